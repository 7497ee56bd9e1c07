package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

type etcdPeer struct {
	client *clientv3.Client
	// For each time to live. A session's mutexes of one name hold it together, so that workers which
	// contend need one each.
	sessions map[int][]*concurrency.Session
}

func connectEtcd(address string) (peer, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{strings.TrimPrefix(address, "etcd://")}, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := client.Get(ctx, "ready"); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return &etcdPeer{client, map[int][]*concurrency.Session{}}, nil
}

func (p *etcdPeer) about() about {
	return about{true, versions("etcd client", "go.etcd.io/etcd/client/v3"),
		"waits by watching; a session per contender of a process", false}
}

func seconds(ttl time.Duration) int { return int((ttl + time.Second - 1) / time.Second) }

func (p *etcdPeer) prepare(ttl time.Duration, workers int) error {
	key := seconds(ttl)
	for len(p.sessions[key]) < workers {
		session, err := concurrency.NewSession(p.client, concurrency.WithTTL(key))
		if err != nil {
			return err
		}
		p.sessions[key] = append(p.sessions[key], session)
	}
	return nil
}

func (p *etcdPeer) lock(name string, ttl time.Duration, worker int) lock {
	return &etcdLock{concurrency.NewMutex(p.sessions[seconds(ttl)][worker], name)}
}

type etcdLock struct{ *concurrency.Mutex }

func (l *etcdLock) acquire(ctx context.Context) (int64, error) {
	err := l.Lock(ctx)
	if err != nil && ctx.Err() != nil {
		return 0, errGaveUp
	}
	if err != nil {
		return 0, err
	}
	return l.Header().Revision, nil
}

func (l *etcdLock) release() error { return l.Unlock(context.Background()) }
