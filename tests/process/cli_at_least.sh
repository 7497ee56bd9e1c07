#!/usr/bin/env bash
# interlock run --at-least: the lock stays taken after the command, for hosts whose clocks differ.
source "$(dirname "$0")/cli_lib.bash"

now() { date +%s%N; }
# A moment at which the lock was certainly not yet granted, so what follows is late enough.
since() { (($(now) - $1 >= $2 * 1000000000)); }

it "keeps the lock after the command, and run ends with the command"
start=$(now)
expect 0 "$INTERLOCK" run --at-least 5s --label "the backup" nightly -- true
refute since "$start" 5
expect 75 "$INTERLOCK" run -n nightly -- touch ran
refute test -e ran
expect 0 "$INTERLOCK" who nightly
contains "$out" "(the backup)"
expect 0 "$INTERLOCK" list
contains "$out" "the backup"
expect 0 "$INTERLOCK" run -w 60s nightly -- true
check since "$start" 5

it "leaves no gap for one that waits in line"
start=$(now)
"$INTERLOCK" run --at-least 3s line -- sh -c 'touch started; until test -e go; do sleep 0.02; done' &
first=$!
eventually test -e started
"$INTERLOCK" run line -- touch waited &
second=$!
eventually waiting line 1
touch go
ends "$first" 0
ends "$second" 0
check since "$start" 3

it "keeps nothing if the command took longer, and needs no more time for it"
expect 0 "$INTERLOCK" run --at-least 1ms long -- sleep 0.1
check free long

it "passes on the exit status of the command"
expect 3 "$INTERLOCK" run --at-least 1h status -- sh -c 'exit 3'
check held status
expect 143 "$INTERLOCK" run --at-least 1h signal -- sh -c 'kill -TERM $$'
check held signal

it "keeps all names, and keeps others of the same identity as excluded as before"
expect 0 "$INTERLOCK" run --at-least 1h one/row --also two -- true
for name in one/row one two; do expect 75 "$INTERLOCK" run -n $name -- true; done
expect 0 "$INTERLOCK" run --at-least 1h --identity me mine -- true
expect 75 "$INTERLOCK" run -n mine -- true
expect 0 "$INTERLOCK" run -n --identity me mine -- true
expect 75 "$INTERLOCK" run -n mine -- true

it "break ends it"
expect 0 "$INTERLOCK" break --yes status
check free status

it "keeps nothing if interlock run is killed"
hold killed --at-least 1h
kill -KILL "$holder"
eventually free killed
check gone "$command"

it "keeps nothing if the lock was lost, or the command could not be started"
hold lost --at-least 1h --ttl 1s
expect 0 "$INTERLOCK" break --yes lost
ends "$holder" 76
check free lost
expect 127 "$INTERLOCK" run --at-least 1h missing -- ./no-such-command
check free missing

it "keeps nothing that was taken away from it before it noticed"
rm -f go
"$INTERLOCK" run --at-least 1h --ttl 1h broken -- sh -c 'echo $$ >pid.new; mv pid.new pid; until test -e go; do sleep 0.02; done' &
job=$!
eventually test -e pid
kill -STOP "$job"
expect 0 "$INTERLOCK" break --yes broken
touch go
reaped() { ! test -e "/proc/$(<pid)"; }
eventually reaped
kill -CONT "$job"
ends "$job" 76
check free broken

it "says that the rest can't be kept, and passes on the exit status"
mkdir -m 0700 redis
redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work/redis" >/dev/null &
redis=$!
eventually redis-cli -s "$work/redis.sock" ping >/dev/null 2>&1
expect 3 "$INTERLOCK" run --url "redis+unix://$work/redis.sock?timeout=100ms" --at-least 1h gone -- sh -c "kill -KILL $redis; exit 3"
contains "$err" "gone: can't be kept for the rest of --at-least (1h), so it is released now: "
finish
