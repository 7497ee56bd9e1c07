// Gives the history of plain mutexes to Porcupine, a checker of linearizability that we did not write.
//
//	porcupine [--picture FILE.html] DIRECTORY
//
// Prints one object of JSON. Exit status: 0 if the history is in order, 1 if it is not, 2 if it can't be read.
//
// A lease on one exclusive resource is two operations: "acquire", from when it was asked until it was told, and "end",
// from when its holder believes in it no more until the release was answered. An end that nobody answered (killed, lost,
// evicted) may take effect at any time after that. Leases of other kinds are left out: what remains of a history that is
// in order is in order.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const patience = time.Minute // for one resource

type operation struct {
	Verb  string // acquire, end
	Lease string
}

// The state is the lease that holds the mutex, or "".
var mutex = porcupine.Model{
	Init: func() interface{} { return "" },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		op := input.(operation)
		if op.Verb == "acquire" {
			return state == "", op.Lease
		}
		return state == op.Lease, ""
	},
	DescribeOperation: func(input, _ interface{}) string {
		op := input.(operation)
		return op.Verb + " " + op.Lease
	},
	DescribeState: func(state interface{}) string {
		if state == "" {
			return "free"
		}
		return "held by " + state.(string)
	},
}

type report struct {
	LookedAt  int      `json:"looked_at"` // operations
	OK        bool     `json:"ok"`
	Resources []string `json:"resources"`
	Resource  string   `json:"resource,omitempty"`  // the first that is not in order
	Undecided []string `json:"undecided,omitempty"` // it took too long
	Skipped   string   `json:"skipped,omitempty"`
}

func check(history *History, picture string) (report, error) {
	result := report{OK: true, Resources: []string{}}
	if history.Voided != "" {
		result.Skipped = "the store's promise allows two holders across: " + history.Voided
		return result, nil
	}
	operations := history.Operations()
	for resource := range operations {
		result.Resources = append(result.Resources, resource)
	}
	sort.Strings(result.Resources)
	for _, resource := range result.Resources {
		its := operations[resource]
		result.LookedAt += len(its)
		outcome, info := porcupine.CheckOperationsVerbose(mutex, its, patience)
		if outcome == porcupine.Unknown {
			result.Undecided = append(result.Undecided, resource)
		}
		if outcome != porcupine.Illegal || !result.OK {
			continue
		}
		result.OK = false
		result.Resource = resource
		if picture == "" {
			continue
		}
		if err := porcupine.VisualizePath(mutex, info, picture); err != nil {
			return result, fmt.Errorf("the picture can't be written: %w", err)
		}
	}
	return result, nil
}

func run() (bool, error) {
	picture := flag.String("picture", "", "draw the first resource that is not in order into this `file`")
	flag.Parse()
	if flag.NArg() != 1 {
		return false, errors.New("usage: porcupine [--picture FILE.html] DIRECTORY")
	}
	history, err := read(flag.Arg(0))
	if err != nil {
		return false, err
	}
	result, err := check(history, *picture)
	if err != nil {
		return false, err
	}
	return result.OK, json.NewEncoder(os.Stdout).Encode(result)
}

func main() {
	ok, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "porcupine:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}
