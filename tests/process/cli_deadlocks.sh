#!/usr/bin/env bash
# deadlocks: jobs that hold a lock and wait for another's.
source "$(dirname "$0")/cli_lib.bash"
unset INTERLOCK_ACTOR

waits_for() { "$INTERLOCK" list "$1" | grep -q waiting; }
until_there() { until [[ -e $1 ]]; do sleep 0.05; done; }
export -f waits_for until_there
export INTERLOCK

it "says with 1 that there is none"
expect 1 "$INTERLOCK" deadlocks
same "$out" ""
expect 1 "$INTERLOCK" deadlocks --json
contains "$out" '"deadlocks":[]'

it "a job that is stopped by a deadlock says so, and the other one goes on"
# The inner runs are parts of their jobs.
"$INTERLOCK" run --actor one --label outer-one a -- bash -c '
  touch one; until_there two
  "$INTERLOCK" run b --label inner-one -- true; echo $? >one.status' 2>one.err &
one=$!
"$INTERLOCK" run --actor two --label outer-two b -- bash -c '
  touch two; until_there one; until waits_for b; do sleep 0.05; done
  "$INTERLOCK" list --json >both.json
  "$INTERLOCK" run a --label inner-two -- true; echo $? >two.status' 2>two.err &
two=$!
wait "$one" "$two"
same "$(<one.status)" 0

it "ends with 75, as if it were taken"
same "$(<two.status)" 75

it "names who waits, who holds, and as which actors"
contains "$(<two.err)" "deadlock"
contains "$(<two.err)" "'inner-one' ("
contains "$(<two.err)" "for b, which is held by 'outer-two' ("
contains "$(<two.err)" "'inner-two' ("
contains "$(<two.err)" "for a, which is held by 'outer-one' ("
contains "$(<two.err)" "actor one>"
contains "$(<two.err)" "actor two)"
contains "$(<two.err)" "interlock run ONE --also OTHER"

it "list --json has the actors"
contains "$(<both.json)" '"actor":"one"'
contains "$(<both.json)" '"actor":"one>'

it "commands of one actor that run side by side are no deadlock"
# Of each job, one command works and another one waits for what the other job's first one has.
for pair in "ann x y" "bob y x"; do
  read -r job has wants <<<"$pair"
  JOB=$job HAS=$has WANTS=$wants "$INTERLOCK" run --actor "$job" "$job" -- bash -c '
    "$INTERLOCK" run "$HAS" -- bash -c "touch $JOB; until_there go" &
    until_there ann; until_there bob
    "$INTERLOCK" run "$WANTS" -- true; echo $? >$JOB.status
    wait' 2>"$job.err" &
done
eventually waits_for x
eventually waits_for y
expect 1 "$INTERLOCK" deadlocks
# Those who wait look as well, half a second after they came, and half a second later again.
sleep 2
touch go
eventually test -s ann.status
eventually test -s bob.status
same "$(<ann.status) $(<ann.err)" "0 "
same "$(<bob.status) $(<bob.err)" "0 "

it "an empty actor is none, whatever there is around it"
expect 0 "$INTERLOCK" run --actor carl c -- "$INTERLOCK" run --actor '' d -- "$INTERLOCK" list --json
contains "$out" '"actor":"carl"'
contains "$out" '"actor":""'

finish
