#!/usr/bin/env bash
# deadlocks: jobs that hold a lock and wait for another's.
source "$(dirname "$0")/cli_lib.bash"

it "says with 1 that there is none"
expect 1 "$INTERLOCK" deadlocks
same "$out" ""
expect 1 "$INTERLOCK" deadlocks --json
contains "$out" '"deadlocks":[]'

it "a job that is stopped by a deadlock says so, and the other one goes on"
# The inner runs inherit their actors.
"$INTERLOCK" run --actor one a -- bash -c "
  touch one; until [[ -e two ]]; do sleep 0.05; done
  '$INTERLOCK' run b -- true; echo \$? >one.status" 2>one.err &
one=$!
"$INTERLOCK" run --actor two b -- bash -c "
  touch two; until [[ -e one ]]; do sleep 0.05; done
  until '$INTERLOCK' list b | grep -q waiting; do sleep 0.05; done
  '$INTERLOCK' run a --label inner -- true; echo \$? >two.status" 2>two.err &
two=$!
wait "$one" "$two"
same "$(<one.status)" 0
refute [ "$(<two.status)" = 0 ]
contains "$(<two.err)" "deadlock"
contains "$(<two.err)" "inner"
contains "$(<two.err)" "which is held by"

finish
