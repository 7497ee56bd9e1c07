// etcd's own lock for Go: so many workers of one client, each with a lock of its own, that lock and
// unlock. Prints the cycles a second, once for each line it reads.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	workers, err := strconv.Atoi(os.Args[2])
	fail(err)
	cycles, err := strconv.Atoi(os.Args[3])
	fail(err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Args[1]}})
	fail(err)
	defer client.Close()
	session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	fail(err)
	defer session.Close()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		begin := time.Now()
		var all sync.WaitGroup
		for worker := 0; worker < workers; worker++ {
			all.Add(1)
			mutex := concurrency.NewMutex(session, fmt.Sprintf("go/%d", worker))
			go func() {
				defer all.Done()
				for i := 0; i < cycles; i++ {
					fail(mutex.Lock(context.Background()))
					fail(mutex.Unlock(context.Background()))
				}
			}()
		}
		all.Wait()
		fmt.Println(float64(workers*cycles) / time.Since(begin).Seconds())
	}
}
