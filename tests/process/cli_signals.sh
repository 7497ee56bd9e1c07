#!/usr/bin/env bash
# Signals: forwarded to the command, and the end of a wait.
source "$(dirname "$0")/cli_lib.bash"

# A job in the background of a script ignores SIGINT and SIGQUIT, unless somebody sees to it.
as_from_a_terminal() {
  exec python3 -c 'import os, signal, sys
for each in (signal.SIGINT, signal.SIGQUIT): signal.signal(each, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$@"
}

it "forwards signals to the whole group of the command"
cat >listen <<'LISTEN'
import os, signal, sys, time
# listen SIGNAL: two processes that wait for it.
child = os.fork()
name = "parent" if child else "child"
def heard(number, frame):
    with open("heard", "a") as file: file.write(name + "\n")
    if child: os.waitpid(child, 0)
    os._exit(5)
signal.signal(getattr(signal, "SIG" + sys.argv[1]), heard)
open("ready." + name, "w").close()
while True: time.sleep(0.05)
LISTEN
for signal in TERM INT HUP QUIT USR1 USR2 WINCH; do
  rm -f heard ready.*
  as_from_a_terminal "$INTERLOCK" run a -- python3 listen $signal &
  job=$!
  eventually test -e ready.parent
  eventually test -e ready.child
  kill -$signal "$job"
  ends "$job" 5
  same "$(sort heard | paste -sd' ')" "child parent"
done

it "ends with 128+n if the signal ends the command, and frees the lock"
hold a
kill -TERM "$holder"
ends "$holder" 143
check gone "$command"
check free a

it "passes on what is sent to the process that the store names"
hold a
kill -TERM "$(holder_pid a)"
ends "$holder" 143
check free a

it "ends a stopped command when it is asked to end"
"$INTERLOCK" run a -- sh -c 'echo $$ >stopped; kill -STOP $$; exec sleep 300' &
job=$!
eventually test -s stopped
eventually grep -qs '^State:.T' "/proc/$(<stopped)/status"
kill -TERM "$job"
ends "$job" 143
check free a

it "ignores what it was started to ignore, as with nohup"
hold a
nohup "$INTERLOCK" run a -- touch nohupped >nohup.out 2>&1 &
waiter=$!
eventually waiting a 1
kill -HUP "$waiter" "$(pgrep -P "$waiter")"
let_go
ends "$waiter" 0
check test -e nohupped

it "tells the end of a command though SIGCHLD was ignored"
python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$INTERLOCK" run a -- sh -c 'exit 3' &
ends $! 3

if unshare -rpf --mount-proc true 2>/dev/null; then
  it "waits for orphans as the first process of a container"
  expect 0 unshare -rpf --mount-proc "$INTERLOCK" run a -- sh -c '
    sh -c "sleep 0.05 & echo \$! >orphan"
    for try in $(seq 500); do
      test -e "/proc/$(cat orphan)" || exit 0
      sleep 0.02
    done
    exit 4'
fi

it "loses nothing however many signals come while it is stopped"
"$INTERLOCK" run --ttl 10m a -- sh -c 'trap "" USR1; echo $$ >started; until test -e enough; do sleep 0.05; done; exit 4' &
job=$!
eventually test -s started
kill -STOP "$job"
# More than a socket holds messages.
python3 -c 'import os, signal, sys, time
for _ in range(3000):
    os.kill(int(sys.argv[1]), signal.SIGUSR1)
    time.sleep(0.0005)' "$(holder_pid a)"
touch enough
eventually gone "$(<started)"
kill -CONT "$job"
ends "$job" 4
check free a

it "gives up the wait when it is asked to end, and leaves nothing in the queue"
hold a
for signal in INT TERM HUP; do
  as_from_a_terminal "$INTERLOCK" run a -- touch ran &
  waiter=$!
  eventually waiting a 1
  kill -$signal "$waiter"
  ends "$waiter" $((128 + $(kill -l $signal)))
  check waiting a 0
done
"$INTERLOCK" acquire a >token &
waiter=$!
eventually waiting a 1
kill -TERM "$waiter"
ends "$waiter" 143
check waiting a 0
refute test -e ran
check alive "$command"

it "leaves nothing in the queue when it is killed while it waits"
"$INTERLOCK" run a -- touch ran &
waiter=$!
eventually waiting a 1
kill -KILL "$waiter"
ends "$waiter" 137
eventually waiting a 0
let_go
refute test -e ran
finish
