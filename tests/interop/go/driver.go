// redsync over go-redis, driven line by line; tests/interop/run says how.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func main() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]})
	locks := redsync.New(goredis.NewPool(client))
	var mutex *redsync.Mutex
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		answer := "?"
		switch words[0] {
		case "lock":
			ttl, _ := strconv.Atoi(words[2])
			mutex = locks.NewMutex(words[1],
				redsync.WithExpiry(time.Duration(ttl)*time.Millisecond), redsync.WithTries(1))
			answer = "locked"
			if err := mutex.Lock(); err != nil {
				answer = "busy"
			}
		case "unlock":
			answer = "unlocked"
			if ok, err := mutex.Unlock(); !ok || err != nil {
				answer = "refused"
			}
		}
		fmt.Println(answer)
	}
}
