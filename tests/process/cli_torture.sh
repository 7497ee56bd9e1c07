#!/usr/bin/env bash
# interlock torture: workers over a store of the user's own, killed and stopped, and what is checked then.
source "$(dirname "$0")/cli_lib.bash"

# looked_at CHECK: how much it looked at, in the JSON that was printed.
looked_at() {
  python3 -c 'import json,sys
print(next(f["looked_at"] for f in json.load(open("out"))["rounds"][0]["checks"] if f["check"] == sys.argv[1]))' "$1"
}

it "tries a store, finds nothing wrong with it, and leaves nothing there"
expect 0 "$INTERLOCK" torture --duration 3s --seed 7 --json
same "$(python3 -c 'import json; print(json.load(open("out"))["violations"])')" 0
for check in exclusion fences "told once" answers ends recovery losses; do
  check test "$(looked_at "$check")" -gt 0
done
same "$("$INTERLOCK" list --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["resources"])')" "[]"

it "keeps the history where it is told to, and takes all workers for one process in memory"
expect 0 "$INTERLOCK" --url memory: torture --duration 1s --keep history
contains "$out" "exclusion"
check test -s history/worker-0.0.log
check test ! -e history/worker-1.0.log

it "says how a round is repeated"
contains "$out" "seed"

it "refuses what makes no sense"
expect 64 "$INTERLOCK" torture --processes 0
expect 64 "$INTERLOCK" torture --duration 3
expect 69 "$INTERLOCK" --url redis://127.0.0.1:1 torture --duration 1s

finish
