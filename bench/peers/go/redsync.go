package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

type redsyncPeer struct {
	locks    *redsync.Redsync
	options  []redsync.Option
	settings string
}

func connectRedsync(best bool, addresses []string) (peer, error) {
	var pools []rsredis.Pool
	for _, address := range addresses {
		options, err := redis.ParseURL(address)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
		client := redis.NewClient(options)
		if err := client.Ping(context.Background()).Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
		pools = append(pools, goredis.NewPool(client))
	}
	p := &redsyncPeer{locks: redsync.New(pools...), settings: "retry after 50 to 250 ms, 32 tries"}
	if best {
		p.settings = "retry after 1 to 2 ms, doubled up to 1 to 257 ms; 64 tries"
		p.options = []redsync.Option{redsync.WithRetryDelayFunc(backoff), redsync.WithTries(64)}
	}
	return p, nil
}

// A fixed short delay has a crowd keep the server from its work.
func backoff(tries int) time.Duration {
	most := 256
	if tries < 9 {
		most = 1 << (tries - 1)
	}
	return time.Millisecond + time.Duration(rand.Intn(most*1000))*time.Microsecond
}

func (p *redsyncPeer) about() about {
	return about{true, versions("redsync", "github.com/go-redsync/redsync/v4",
		"go-redis", "github.com/redis/go-redis/v9"), p.settings, true}
}

func (p *redsyncPeer) prepare(time.Duration, int) error { return nil }

func (p *redsyncPeer) lock(name string, ttl time.Duration, _ int) lock {
	options := append([]redsync.Option{redsync.WithExpiry(ttl)}, p.options...)
	return &redsyncLock{p.locks.NewMutex(name, options...)}
}

type redsyncLock struct{ *redsync.Mutex }

func (l *redsyncLock) acquire(ctx context.Context) (int64, error) {
	err := l.LockContext(ctx)
	var network *net.OpError
	if err == nil || (errors.As(err, &network) && !network.Timeout()) {
		return 0, err
	}
	return 0, errGaveUp
}

func (l *redsyncLock) release() error {
	// What has expired before can't be given back, which is no reason to stop.
	if _, err := l.Unlock(); err != nil {
		fmt.Fprintln(os.Stderr, "unlock:", strings.Join(strings.Fields(err.Error()), " "))
	}
	return nil
}
