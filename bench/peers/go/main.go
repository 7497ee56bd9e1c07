// The driver of the peers in Go; bench/peers/README.md says what it is told and what it answers.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	mostTold = 200_000
	// A wait that the peer itself does not give up ends so long after the end of the job's time.
	grace = 8 * time.Second
)

// errGaveUp: the peer has used up its tries, or the job its time.
var errGaveUp = errors.New("gave up")

// A peer makes the locks of a job. Workers that share a name are told apart by their number.
type peer interface {
	about() about
	// prepare does before the clock starts what so many workers on one name need.
	prepare(ttl time.Duration, workers int) error
	lock(name string, ttl time.Duration, worker int) lock
}

type lock interface {
	acquire(ctx context.Context) (fence int64, err error)
	release() error
}

type about struct {
	Ready    bool   `json:"ready"`
	Version  string `json:"version"`
	Settings string `json:"settings"`
	Best     bool   `json:"best"`
}

type job struct {
	Do       string  `json:"do"`
	Name     string  `json:"name"`
	Distinct bool    `json:"distinct"`
	Workers  int     `json:"workers"`
	Shared   float64 `json:"shared"`
	Seconds  float64 `json:"seconds"`
	Most     int     `json:"most"`
	HoldUs   int64   `json:"hold_us"`
	TTL      int64   `json:"ttl_ms"`
	Register string  `json:"register"`
	Records  bool    `json:"records"`
	Count    int     `json:"count"`
}

func (j job) ttl() time.Duration {
	if j.TTL <= 0 {
		return 30 * time.Second
	}
	return time.Duration(j.TTL) * time.Millisecond
}

type worked struct {
	Cycles   int64      `json:"cycles"`
	Seconds  float64    `json:"seconds"`
	Failed   int64      `json:"failed"`
	Overlaps int64      `json:"overlaps"`
	RssKb    int64      `json:"rss_kb"`
	Records  [][4]int64 `json:"records"`
	CycleUs  []float64  `json:"cycle_us,omitempty"`
}

type kept struct {
	Held    int     `json:"held"`
	Seconds float64 `json:"seconds"`
	LastUs  float64 `json:"last_us"`
	RssKb   int64   `json:"rss_kb"`
}

type cannot struct {
	Cannot string `json:"cannot"`
}

type failure struct {
	Error string `json:"error"`
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()/100) / 10 }

func rssKb() (kb int64) {
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if _, err := fmt.Sscanf(line, "VmRSS: %d", &kb); err == nil {
			break
		}
	}
	return
}

// enter makes the file of the one that holds the lock; it's there already if somebody else does.
func enter(register string) (alone bool, err error) {
	file, err := os.OpenFile(register, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, file.Close()
}

// shift is a job under way.
type shift struct {
	job
	until    time.Time // no round begins after it; zero: only `most` ends the job
	cycles   int64
	failed   int64
	overlaps int64
}

func (s *shift) over() bool { return !s.until.IsZero() && !time.Now().Before(s.until) }

// wait asks until the lock is there: a peer that gives up is asked again while there is time.
func (s *shift) wait(ctx context.Context, l lock) (int64, error) {
	for {
		fence, err := l.acquire(ctx)
		if !errors.Is(err, errGaveUp) {
			return fence, err
		}
		atomic.AddInt64(&s.failed, 1)
		if s.over() {
			return 0, errGaveUp
		}
	}
}

func (s *shift) hold(register string) error {
	alone := false
	if register != "" {
		var err error
		if alone, err = enter(register); err != nil {
			return err
		}
		if !alone {
			atomic.AddInt64(&s.overlaps, 1)
		}
	}
	if s.HoldUs > 0 {
		time.Sleep(time.Duration(s.HoldUs) * time.Microsecond)
	}
	if alone {
		return os.Remove(register)
	}
	return nil
}

func (s *shift) worker(ctx context.Context, l lock, register string) (records [][4]int64, cycles []float64, err error) {
	for round := 0; (s.Most == 0 || round < s.Most) && !s.over(); round++ {
		asked := time.Now()
		fence, err := s.wait(ctx, l)
		if errors.Is(err, errGaveUp) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		from := time.Now()
		if err := s.hold(register); err != nil {
			return nil, nil, err
		}
		to := time.Now()
		if err := l.release(); err != nil {
			return nil, nil, err
		}
		if atomic.AddInt64(&s.cycles, 1) > mostTold {
			continue
		}
		if s.Records {
			records = append(records, [4]int64{asked.UnixMicro(), from.UnixMicro(), to.UnixMicro(), fence})
		} else {
			cycles = append(cycles, micros(time.Since(asked)))
		}
	}
	return records, cycles, nil
}

func work(p peer, j job) any {
	if j.Shared != 0 {
		return cannot{"it has no read/write lock"}
	}
	if j.Workers < 1 || j.Seconds < 0 || (j.Seconds == 0 && j.Most == 0) {
		return failure{"a work job needs workers, and seconds or most"}
	}
	contenders := j.Workers
	if j.Distinct {
		contenders = 1
	}
	if err := p.prepare(j.ttl(), contenders); err != nil {
		return failure{err.Error()}
	}
	s := &shift{job: j}
	ctx, cancel := context.WithCancel(context.Background())
	begin := time.Now()
	if j.Seconds > 0 {
		s.until = begin.Add(time.Duration(j.Seconds * float64(time.Second)))
		ctx, cancel = context.WithDeadline(ctx, s.until.Add(grace))
	}
	defer cancel()
	answer := worked{Records: [][4]int64{}}
	var first error
	var mutex sync.Mutex
	var all sync.WaitGroup
	for worker := 0; worker < j.Workers; worker++ {
		name, register, number := j.Name, j.Register, worker
		if j.Distinct {
			name, number = fmt.Sprintf("%s-%d", name, worker), 0
			if register != "" {
				register = fmt.Sprintf("%s-%d", register, worker)
			}
		}
		l := p.lock(name, j.ttl(), number)
		all.Add(1)
		go func() {
			defer all.Done()
			records, cycles, err := s.worker(ctx, l, register)
			mutex.Lock()
			defer mutex.Unlock()
			answer.Records = append(answer.Records, records...)
			answer.CycleUs = append(answer.CycleUs, cycles...)
			if first == nil {
				first = err
			}
		}()
	}
	all.Wait()
	if first != nil {
		return failure{first.Error()}
	}
	answer.Seconds = time.Since(begin).Seconds()
	answer.Cycles, answer.Failed, answer.Overlaps = s.cycles, s.failed, s.overlaps
	answer.RssKb = rssKb()
	return answer
}

func hold(p peer, j job) any {
	if j.Count < 1 {
		return failure{"a hold job needs a count"}
	}
	if err := p.prepare(j.ttl(), 1); err != nil {
		return failure{err.Error()}
	}
	begin := time.Now()
	var times []float64
	for i := 0; i < j.Count; i++ {
		asked := time.Now()
		if _, err := p.lock(fmt.Sprintf("%s-%d", j.Name, i), j.ttl(), 0).acquire(context.Background()); err != nil {
			return failure{fmt.Sprintf("%s-%d: %v", j.Name, i, err)}
		}
		times = append(times, micros(time.Since(asked)))
	}
	seconds := time.Since(begin).Seconds()
	if len(times) > 100 {
		times = times[len(times)-100:]
	}
	sort.Float64s(times)
	return kept{j.Count, seconds, times[len(times)/2], rssKb()}
}

func obey(p peer, line []byte) any {
	var j job
	if err := json.Unmarshal(line, &j); err != nil {
		return failure{"not a job: " + err.Error()}
	}
	switch j.Do {
	case "work":
		return work(p, j)
	case "hold":
		return hold(p, j)
	}
	return cannot{fmt.Sprintf("there is no job %q", j.Do)}
}

func connect(words []string) (peer, error) {
	if len(words) < 3 || (words[1] != "default" && words[1] != "best") {
		return nil, errors.New("usage: driver redsync|etcd_mutex default|best ADDRESS...")
	}
	switch words[0] {
	case "redsync":
		return connectRedsync(words[1] == "best", words[2:])
	case "etcd_mutex":
		return connectEtcd(words[2])
	}
	return nil, fmt.Errorf("no peer here is called %q", words[0])
}

func main() {
	rand.Seed(time.Now().UnixNano())
	out := json.NewEncoder(os.Stdout)
	p, err := connect(os.Args[1:])
	if err != nil {
		_ = out.Encode(failure{err.Error()})
		os.Exit(1)
	}
	_ = out.Encode(p.about())
	for lines := bufio.NewReader(os.Stdin); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		_ = out.Encode(obey(p, line))
	}
}
