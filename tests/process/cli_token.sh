#!/usr/bin/env bash
# acquire, extend, release: a lock in the form of a token.
source "$(dirname "$0")/cli_lib.bash"

it "acquire prints a token, and the lock outlives the command"
expect 0 "$INTERLOCK" acquire a --ttl 1h --label "by hand"
token=$out
check test -n "$token"
same "$(wc -l <out)" 1
check held a
contains "$("$INTERLOCK" who a)" "by hand"
expect 75 "$INTERLOCK" acquire -n a
same "$out" ""
expect 3 "$INTERLOCK" acquire -w 100ms -E 3 a

it "extend gives it more time, and release gives it back"
remaining() { "$INTERLOCK" who --json a | python3 -c 'import json,sys; print(json.load(sys.stdin)["resources"][0]["holders"][0]["remaining_ms"])'; }
expect 0 "$INTERLOCK" extend "$token" --ttl 3h
token=$out
check test "$(remaining)" -gt 7200000
expect 0 "$INTERLOCK" extend "$token"
token=$out
check test "$(remaining)" -gt 7200000
check held a
expect 0 "$INTERLOCK" release "$token"
check free a

it "a token of a lock that has ended gives 76"
expect 76 "$INTERLOCK" release "$token"
contains "$err" "interlock: "
contains "$err" a
expect 76 "$INTERLOCK" extend "$token"
expect 0 "$INTERLOCK" acquire a --ttl 200ms
token=$out
eventually free a
expect 76 "$INTERLOCK" release "$token"
expect 0 "$INTERLOCK" acquire a
other=$out
expect 76 "$INTERLOCK" release "$token"
check held a

it "reads the token from stdin"
check "$INTERLOCK" release - <<<"$other"
check free a

it "frees the lock when the process of --pid ends"
sleep 300 &
process=$!
expect 0 "$INTERLOCK" acquire a --ttl 1h --pid $process
token=$out
check held a
expect 0 "$INTERLOCK" extend "$token"
check held a
kill -KILL $process
wait $process 2>/dev/null
eventually free a
expect 64 "$INTERLOCK" acquire a --pid $process

it "takes several, shared, and slots"
expect 0 "$INTERLOCK" acquire a b --also c
token=$out
expect 75 "$INTERLOCK" acquire -n b
expect 0 "$INTERLOCK" release "$token"
for name in a b c; do check free $name; done
expect 0 "$INTERLOCK" acquire --shared a
first=$out
expect 0 "$INTERLOCK" acquire -n --shared a
expect 75 "$INTERLOCK" acquire -n a
expect 0 "$INTERLOCK" release "$first"
check held a
expect 0 "$INTERLOCK" acquire -n --slots 1 pool
expect 75 "$INTERLOCK" acquire -n --slots 1 pool

it "--json tells it all"
expect 0 "$INTERLOCK" acquire j --ttl 1m --json
check python3 - "$out" <<'CHECK'
import json, sys
d = json.loads(sys.argv[1])
assert d["token"] and d["res"] == "j" and d["resources"] == ["j"], d
assert d["ttl_ms"] == 60000 and 0 < d["remaining_ms"] <= 60000 and d["fence"] > 0, d
assert len(d["owner"]) == 8, d
CHECK

it "gives the lock back if nobody gets to read the token"
"$INTERLOCK" acquire full >/dev/full 2>err
same "$?" 74
check free full
it "counts a token of which something was taken away as lost, and breaks what is below as a whole"
token=$("$INTERLOCK" acquire x --also y)
expect 0 "$INTERLOCK" break --yes x
expect 76 "$INTERLOCK" extend "$token"
expect 76 "$INTERLOCK" release "$token"
check free y
token=$("$INTERLOCK" acquire t/row)
expect 64 "$INTERLOCK" break --yes t
contains "$err" "below it"
expect 75 "$INTERLOCK" run -n t -- true
expect 0 "$INTERLOCK" break --yes t/row
expect 0 "$INTERLOCK" run -n t -- true

it "says who is in the way, or nothing with -q"
token=$("$INTERLOCK" acquire taken --label "the other job")
expect 75 "$INTERLOCK" run -n free --also taken -- true
contains "$err" "taken is held by"
contains "$err" "the other job"
expect 0 "$INTERLOCK" run -n -q -E 0 taken -- true
same "$err" ""
expect 1 "$INTERLOCK" who taken/part
contains "$out" "can't be had: taken is held by"
expect 0 "$INTERLOCK" release "$token"

it "does not hold up the line when it is killed while it waits"
hold line
"$INTERLOCK" acquire line >/dev/null &
first=$!
eventually waiting line 1
"$INTERLOCK" run line -- true &
next=$!
eventually waiting line 2
kill -KILL "$first"
wait "$first" 2>/dev/null
let_go line
begun=$SECONDS
check wait "$next"
check test $((SECONDS - begun)) -lt 4

finish
