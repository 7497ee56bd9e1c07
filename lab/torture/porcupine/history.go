package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

// What this needs of a line; see lab/torture/history.hpp.
type event struct {
	T         int64  `json:"t"`
	K         string `json:"k"`
	Op        string `json:"op"`
	Verb      string `json:"verb"`
	Lease     string `json:"lease"`
	Owner     string `json:"owner"`
	R         string `json:"r"`
	M         string `json:"m"`
	Identity  string `json:"identity"`
	Hierarchy bool   `json:"hierarchy"`
	Adopted   bool   `json:"adopted"`
	Asked     int64  `json:"asked"`
	Until     int64  `json:"until"`
	Answer    string `json:"answer"`
	Worker    string `json:"worker"`
	Name      string `json:"name"`
	Voids     bool   `json:"voids"`
	Hand      int    `json:"hand"`
	Parts     []struct {
		R string `json:"r"`
		M string `json:"m"`
	} `json:"parts"`

	writer string
}

// A grant of a plain mutex.
type grant struct {
	lease, resource, owner, writer string
	hand                           int
	asked, told                    int64
	end                            int64 // of the belief
	left                           bool  // given back, so that a release may follow
	over                           bool
	released                       int64 // 0: nobody answered
}

type History struct {
	Voided string // the fault that voids the promise
	grants []*grant
	last   int64 // the time of the last line
}

func read(directory string) (*History, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.log"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no *.log, so no history", directory)
	}
	var events []event
	for _, file := range files {
		if events, err = readLog(file, events); err != nil {
			return nil, err
		}
	}
	sort.SliceStable(events, func(i, j int) bool { return events[i].T < events[j].T })
	return collect(events), nil
}

// A line without an end was not finished when its writer was killed.
func readLog(file string, events []event) ([]event, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	writer := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(file), ".log"), "worker-")
	lines := bufio.NewReader(in)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		// Other kinds of lines may use the same names for other things.
		var kind struct{ K string }
		if err := json.Unmarshal(line, &kind); err != nil {
			return nil, fmt.Errorf("%s:%d is no line of a history: %w", file, number, err)
		}
		if !used[kind.K] {
			continue
		}
		next := event{writer: writer}
		if err := json.Unmarshal(bytes.TrimSpace(line), &next); err != nil {
			return nil, fmt.Errorf("%s:%d can't be read: %w", file, number, err)
		}
		events = append(events, next)
	}
}

var used = map[string]bool{"ask": true, "told": true, "holds": true, "valid": true, "leaves": true, "lost": true,
	"breaks": true, "killed": true, "end": true, "fault": true}

func plain(ask event) bool {
	return ask.Verb == "acquire" && len(ask.Parts) == 1 && ask.Parts[0].M == "exclusive" && ask.Identity == "" &&
		!ask.Hierarchy
}

func collect(events []event) *History {
	history := &History{}
	asks := map[string]event{}
	current := map[string]*grant{} // by lease
	broken := map[string]bool{}    // owners
	killed := map[string]bool{}    // workers
	for _, line := range events {
		history.last = line.T
		switch line.K {
		case "fault":
			if line.Voids {
				history.Voided = line.Name
			}
		case "ask":
			asks[line.Op] = line
		case "holds":
			ask, known := asks[line.Op]
			if line.M != "exclusive" || line.Adopted || !known || !plain(ask) || killed[line.writer] {
				continue
			}
			if line.Owner != "" && broken[line.Owner] {
				continue // told when it had been evicted
			}
			if line.Until < line.T {
				continue // told when its time was over: it was held before, and nobody believed it
			}
			its := &grant{lease: fmt.Sprintf("%s#%d", line.Lease, len(history.grants)), resource: line.R, owner: line.Owner,
				writer: line.writer, hand: ask.Hand, asked: line.Asked, told: line.T, end: later(line.Until, line.T)}
			history.grants = append(history.grants, its)
			current[line.Lease] = its
		case "valid":
			if its := current[line.Lease]; its != nil && !its.over {
				its.end = later(its.end, line.Until)
			}
		case "leaves", "lost":
			if its := current[line.Lease]; its != nil {
				its.left = its.left || (line.K == "leaves" && !its.over)
				its.finish(line.T)
			}
		case "breaks":
			broken[line.Owner] = true
			history.finish(line.T, func(its *grant) bool { return its.owner != "" && its.owner == line.Owner })
		case "killed":
			killed[line.Worker] = true
			history.finish(line.T, func(its *grant) bool { return its.writer == line.Worker })
		case "end":
			history.finish(line.T, func(its *grant) bool { return its.writer == line.writer })
		case "told":
			ask := asks[line.Op]
			its := current[ask.Lease]
			released := (ask.Verb == "release" && line.Answer == "released") ||
				(ask.Verb == "downgrade" && line.Answer == "yes")
			if its != nil && its.left && released {
				its.released = line.T
			}
		}
	}
	return history
}

func (its *grant) finish(at int64) {
	if !its.over {
		its.over = true
		its.end = later(earlier(its.end, at), its.told)
	}
}

func (history *History) finish(at int64, which func(*grant) bool) {
	for _, its := range history.grants {
		if which(its) {
			its.finish(at)
		}
	}
}

// Of each resource.
func (history *History) Operations() map[string][]porcupine.Operation {
	clients := map[string]int{}
	operations := map[string][]porcupine.Operation{}
	for _, its := range history.grants {
		hand := fmt.Sprintf("%s %d", its.writer, its.hand)
		if _, known := clients[hand]; !known {
			clients[hand] = len(clients)
		}
		// An end that nobody answered takes effect at last when all is over.
		never := later(history.last, its.end) + 1
		answered := its.released
		if answered == 0 {
			answered = never
		}
		operations[its.resource] = append(operations[its.resource],
			porcupine.Operation{ClientId: clients[hand], Input: operation{"acquire", its.lease}, Call: its.asked,
				Return: its.told},
			porcupine.Operation{ClientId: clients[hand], Input: operation{"end", its.lease}, Call: its.end,
				Return: later(answered, its.end)})
	}
	return operations
}

func later(a, b int64) int64 {
	if a > b {
		return a
	}
	return b
}

func earlier(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}
