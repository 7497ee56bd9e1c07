#!/usr/bin/env bash
# The command is dead before anybody else can get the lock, whatever happens to us.
source "$(dirname "$0")/cli_lib.bash"

# A command with a child in its group; neither wants to end.
cat >stubborn <<'STUBBORN'
#!/usr/bin/env bash
trap 'echo asked >>asked' TERM
bash -c 'trap "" TERM; echo $$ >child.new; mv child.new child; while :; do sleep 0.1; done' &
echo $$ >parent.new; mv parent.new parent
while :; do sleep 0.1; done
STUBBORN
# Run by the next holder: exit status 0 if the stubborn ones are dead.
cat >successor <<'SUCCESSOR'
#!/usr/bin/env bash
for pid in $(cat parent child); do
  state=$(sed 's/.*) //' /proc/$pid/stat 2>/dev/null) || continue
  [[ $state == [ZX]* || -z $state ]] || exit 3
done
SUCCESSOR
chmod +x stubborn successor

# start NAME [OPTIONS…]: the stubborn command under the lock; its supervisor is $job.
start() {
  rm -f parent child asked
  "$INTERLOCK" run "$@" -- ./stubborn 2>"$work/message" &
  job=$!
  eventually test -e parent
  eventually test -e child
}

it "renews the lock for as long as the command runs"
"$INTERLOCK" run --ttl 500ms a -- sleep 2 &
job=$!
eventually held a
expect 0 "$INTERLOCK" run -w 20s a -- true
check gone "$job"
ends "$job" 0

it "kill -9 of interlock run ends the command and its children, and frees the lock at once"
start a --ttl 10m
before=$SECONDS
kill -KILL "$job"
expect 0 "$INTERLOCK" run -w 30s a -- ./successor
check test $((SECONDS - before)) -lt 15
ends "$job" 137

it "kill -9 of interlock run by its process group does the same"
rm -f parent child
setsid --wait "$INTERLOCK" run --ttl 10m a -- ./stubborn &
job=$!
eventually test -e child
kill -KILL -- "-$(pgrep -P "$job" || echo "$job")" 2>/dev/null || kill -KILL "$job"
expect 0 "$INTERLOCK" run -w 30s a -- ./successor

it "a stopped interlock run has its command killed before another can get the lock"
start a --ttl 1500ms
kill -STOP "$job"
expect 0 "$INTERLOCK" run -w 20s a -- ./successor
check test -e asked
kill -CONT "$job"
ends "$job" 76
contains "$(<message)" "a: the lock was lost"

it "a killed guardian takes the command with it, and the lock is free"
start a --ttl 10m
kill -KILL "$(holder_pid a)"
ends "$job" 137
expect 0 "$INTERLOCK" run -w 20s a -- ./successor

it "a killed guardian ends a wait with 137, and says so"
hold a
"$INTERLOCK" run a -- touch ran 2>message &
job=$!
eventually waiting a 1
kill -KILL "$(pgrep -P "$job")"
ends "$job" 137
same "$(<message)" \
  "interlock: a: the process that guards the command was killed during the wait, so the command is not started"
check waiting a 0
refute test -e ran
let_go

it "a broken lock ends the command with 76, after it was asked to end"
start a --ttl 3s
expect 0 "$INTERLOCK" break --yes a
contains "$err" "stubborn"
contains "$err" "taken away"
ends "$job" 76
contains "$(<message)" "a: the lock was lost"
check test -e asked
check ./successor

it "a command that ends when it is asked to gets the time to"
"$INTERLOCK" run --ttl 3s a -- bash -c 'trap "sleep 0.2; touch tidied; exit 0" TERM; touch ready; while :; do sleep 0.05; done' 2>message &
job=$!
eventually test -e ready
expect 0 "$INTERLOCK" break --yes a
ends "$job" 76
check test -e tidied

it "a store that fails ends the command before the lease does, and can be repaired"
start b --ttl 1500ms
for file in locks/*.json; do echo nonsense >"$file"; done
ends "$job" 76
check ./successor
contains "$(<message)" "b: the lock was lost"
expect 69 "$INTERLOCK" run -n b -- true
contains "$err" "interlock repair"
expect 0 "$INTERLOCK" repair --dry-run
contains "$out" .json
expect 69 "$INTERLOCK" run -n b -- true
expect 0 "$INTERLOCK" repair
contains "$out" .json
expect 0 "$INTERLOCK" run -n b -- true

it "a stopped guardian does not keep the command alive past the lease"
start c --ttl 1500ms
guardian=$(holder_pid c)
kill -STOP "$guardian"
kill -STOP "$job"
kill -CONT "$job"
expect 0 "$INTERLOCK" break --yes c
ends "$job" 76
check ./successor

it "what the command leaves in the background does not hold the lock"
expect 0 "$INTERLOCK" run d -- sh -c 'sleep 300 >/dev/null 2>&1 & echo $! >left'
check free d
check alive "$(<left)"
kill "$(<left)"
it "a killed guardian frees the lock only when the whole group is dead"
for try in 1 2 3 4 5; do
  # The command's child would write on if it lived when the next one gets the lock.
  "$INTERLOCK" run g -- sh -c 'sh -c "while :; do echo x >>beats; sleep 0.001; done" & echo $! >beater; wait' &
  job=$!
  eventually test -s beater
  "$INTERLOCK" run g -- sh -c 'wc -c <beats >before; sleep 0.1; wc -c <beats >after' &
  next=$!
  eventually waiting g 1
  kill -KILL "$(holder_pid g)"
  ends "$next" 0
  same "$(<after)" "$(<before)"
  ends "$job" 137
  rm -f beater beats
done

it "when it and its guardian are both killed, the lock stays until its TTL ends"
start h --ttl 2s
guardian=$(holder_pid h)
kill -STOP "$job"
kill -KILL "$guardian" "$job"
kill -KILL "$(<child)"  # nobody else is left to do it
expect 75 "$INTERLOCK" run -n h -- true
expect 0 "$INTERLOCK" run -w 20s h -- true

it "a command that ends by forking again and again is killed before the lock is said to be lost"
# Each of them lives for some milliseconds, ignores SIGTERM, and leaves the next one behind.
cat >relay <<'RELAY'
#!/bin/sh
trap '' TERM
echo x >>laps
test -e enough || "$0" &
RELAY
chmod +x relay
for try in 1 2 3; do
  rm -f laps
  "$INTERLOCK" run --ttl 3s a -- sh -c './relay & exec sleep 300' 2>message &
  job=$!
  eventually test -s laps
  expect 0 "$INTERLOCK" break --yes a
  ends "$job" 76
  before=$(wc -c <laps)
  contains "$(<message)" "so the command was ended"
  sleep 0.3  # many laps
  same "$(wc -c <laps)" "$before"
done
touch enough

it "a guardian that somebody stops is continued, and the lock is free when the command ends"
"$INTERLOCK" run --ttl 2s a -- sh -c 'until test -e go; do sleep 0.02; done' &
job=$!
eventually held a
guardian=$(holder_pid a)
kill -STOP "$guardian"
touch go
ends "$job" 0
check free a
hold a
kill -STOP "$(holder_pid a)"
kill -TERM "$holder"
ends "$holder" 143
check free a

if unshare -rpf true 2>/dev/null; then
  it "keeps the lock until the command has ended, in a PID namespace with another one's /proc"
  rm -f laps enough ended
  # It ignores SIGTERM, and is the last of its group.
  cat >deaf <<'DEAF'
#!/bin/sh
trap '' TERM
touch listening
until test -e enough; do echo x >>laps; sleep 0.02; done
DEAF
  chmod +x deaf
  # The first process of the namespace stays, as its end would end all others.
  unshare -rpf sh -c '
    "$0" run --ttl 3s a -- sh -c "./deaf & exec sleep 300" 2>message
    echo $? >ended.new; mv ended.new ended
    until test -e enough; do sleep 0.02; done' "$INTERLOCK" &
  job=$!
  eventually test -e listening
  expect 0 "$INTERLOCK" break --yes a
  eventually test -e ended
  same "$(<ended)" 76
  before=$(wc -c <laps)
  sleep 0.3  # many laps
  same "$(wc -c <laps)" "$before"
  touch enough
  ends "$job" 0
fi
finish
