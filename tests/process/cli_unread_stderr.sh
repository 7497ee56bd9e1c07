#!/usr/bin/env bash
# stderr may be a pipe that nobody reads (2>&1 | less), or a stopped terminal: that costs messages, and no lock.
source "$(dirname "$0")/cli_lib.bash"

export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here

# Runs a program whose stderr is a full pipe. Its process id is in the file `pid`. With `drain` in the current
# directory, it is read from then on, into the file `read`.
cat >unread <<'UNREAD'
#!/usr/bin/env python3
import os, subprocess, sys, time
reader, writer = os.pipe()
os.set_blocking(writer, False)
for size in 4096, 1:
    try:
        while True: os.write(writer, b"." * size)
    except BlockingIOError:
        pass
os.set_blocking(writer, True)
os.set_blocking(reader, False)
process = subprocess.Popen(sys.argv[1:], stderr=writer)
with open("pid.new", "w") as file: file.write(str(process.pid))
os.rename("pid.new", "pid")
with open("read", "wb", 0) as seen:
    while process.poll() is None:
        time.sleep(0.01)
        try:
            if os.path.exists("drain"): seen.write(os.read(reader, 1 << 20))
        except BlockingIOError:
            pass
sys.exit(process.returncode if process.returncode >= 0 else 128 - process.returncode)
UNREAD
chmod +x unread

# unread_run [OPTIONS…]: a command under the lock `a`, which ends when there is a file `enough`.
unread_run() {
  rm -f pid command enough drain
  ./unread "$INTERLOCK" run "$@" a -- sh -c 'echo $$ >command; until test -e enough; do sleep 0.02; done' &
  job=$!
  eventually test -s command
  eventually test -e pid
}
over() {
  [[ -e pid ]] && kill -KILL "$(<pid)" 2>/dev/null  # of a test that failed
  touch enough
}

it "renews the lock though nobody reads its log"
unread_run -v --ttl 1s
before=${EPOCHREALTIME//[.,]/}
while ((${EPOCHREALTIME//[.,]/} - before < 2500000)); do  # two TTLs
  check held a
  sleep 0.1
done
check alive "$(<command)"
touch enough
ends "$job" 0
check free a
over

it "says how many lines of the log were dropped"
unread_run -v --ttl 500ms
touch drain
eventually grep -q 'event=log_dropped lines=[1-9]' read
touch enough
ends "$job" 0
over

it "ends when the lock is lost, though nobody reads why"
unread_run --ttl 2s
expect 0 "$INTERLOCK" break --yes a
ends "$job" 76
over

it "ends when it is asked to, though nobody reads its log"
unread_run -v --ttl 2s
kill -TERM "$(<pid)"
ends "$job" 143
check free a
over

it "releases the lock when the guardian was killed, though nobody reads that"
unread_run --ttl 10m
kill -KILL "$(holder_pid a)"
ends "$job" 137
check free a
over

it "ends with the reason that it can't tell"
hold busy
rm -f pid
./unread "$INTERLOCK" run -n busy -- true &
ends $! 75
let_go

it "goes on when the reader of its log has left"
"$INTERLOCK" run -v --ttl 500ms a -- sh -c 'until test -e left; do sleep 0.02; done; sleep 1; exit 5' 2> >(head -n 1 >/dev/null; touch left) &
ends $! 5

it "goes on while the terminal is stopped by Ctrl-S"
check python3 - <<'TEST'
from terminal import *
import subprocess
t = Terminal(interlock, "run", "-v", "--ttl", "1s", "s", "--", "sh", "-c", "echo ready; exec sleep 300")
t.until("ready")
t.type("\x13")
time.sleep(2.5)  # two TTLs
subprocess.run([interlock, "who", "s"], check=True, stdout=subprocess.DEVNULL)
subprocess.run([interlock, "break", "--yes", "s"], check=True, stderr=subprocess.DEVNULL)
end = time.monotonic() + 20
while not os.waitid(os.P_PID, t.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
    if time.monotonic() > end:
        os.kill(t.pid, signal.SIGKILL)
        sys.exit("FAILED: it does not end")
    time.sleep(0.01)
check(os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1]) == 76, "exit status")
TEST
check free s

it "breaks no lock after a question that nobody could see"
hold asked
check python3 - <<'TEST'
from terminal import *
t = Terminal("./unread", interlock, "break", "asked")
t.type("y\n")
check(t.end() == 1, "exit status")
t = Terminal(interlock, "break", "asked")
t.until("Break asked? [y/N] ")
t.type("n\n")
t.until("not broken")
check(t.end() == 1, "exit status")
TEST
check alive "$command"
check held asked
let_go

it "lists nothing on a terminal that is stopped by Ctrl-S, and ends"
check python3 - <<'TEST'
from terminal import *
t = Terminal("sh", "-c", 'echo ready; read line; "$0" list; echo $? >listed', interlock)
t.until("ready")
t.type("\x13")
t.type("go\n")
end = time.monotonic() + 20
while not os.path.exists("listed") or not open("listed").read():
    if time.monotonic() > end:
        os.kill(t.pid, signal.SIGKILL)
        sys.exit("FAILED: it does not end")
    time.sleep(0.01)
check(open("listed").read() == "0\n", "exit status")
t.type("\x11")
check(t.end() == 0, "the shell's exit status")
TEST
finish
