#!/usr/bin/env bash
# interlock top: which locks are fought over.
source "$(dirname "$0")/cli_lib.bash"
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here

it "says so when nothing is locked"
expect 0 "$INTERLOCK" top --once
same "$out" "0 locks, 0 holders, 0 waiting"

hold quiet --label "the old one"
old=$holder
hold busy --label "the holder"
"$INTERLOCK" run busy -- true &
"$INTERLOCK" run busy -- true &
eventually waiting busy 2

it "shows contention, the longest wait and the oldest holder, once, without a terminal"
expect 0 "$INTERLOCK" top
check grep -Eq '^2 locks, 2 holders, 2 waiting, longest wait \S+, oldest holder \S+$' out
check grep -Eq '^NAME +WAITING +LONGEST +HELD +OLDEST +HOLDER$' out
check grep -Eq '^busy +2 +\S+ +1 +\S+ +\S+:[0-9]+ \(the holder\)$' out
check grep -Eq '^quiet +0 +- +1 +\S+ +\S+:[0-9]+ \(the old one\)$' out
refute grep -q $'\033' out

it "sorts as it is told"
names() { "$INTERLOCK" top --once --sort "$1" "${@:2}" | sed -n '3,$s/ .*//p' | tr '\n' ' '; }
same "$(names waiting)" "busy quiet "
same "$(names longest)" "busy quiet "
same "$(names oldest)" "quiet busy "
same "$(names name)" "busy quiet "
same "$(names name q)" "quiet "
expect 64 "$INTERLOCK" top --sort colour
expect 64 "$INTERLOCK" top a b
expect 64 "$INTERLOCK" top --interval 5

it "--json is one object"
expect 0 "$INTERLOCK" top --json --sort oldest
check python3 - "$out" <<'CHECK'
import json, sys
d = json.loads(sys.argv[1])
assert d["store"].startswith("file:") and (d["held"], d["waiting"]) == (2, 2), d
assert d["longest_wait_ms"] >= 0 and d["oldest_hold_ms"] >= 0, d
quiet, busy = d["locks"]
assert (quiet["res"], quiet["held"], quiet["waiting"]) == ("quiet", 1, 0), quiet
assert (busy["res"], busy["held"], busy["waiting"]) == ("busy", 1, 2), busy
assert "the holder" in busy["holder"] and busy["oldest_hold_ms"] <= quiet["oldest_hold_ms"], d
CHECK

it "redraws on a terminal, counts changes, sorts by keys, and q leaves the terminal as it was"
check python3 - <<'TEST'
from terminal import *
import subprocess, termios
t = Terminal(interlock, "top", "--interval", "50ms")
t.until("\x1b[?1049h")
t.until("changes/s")
t.until("sorted by waiting; ")
t.until("q quits")
t.until("CHANGES/S")
before = t.until("quiet")
check("busy" in before, "most waiters first", before)
t.type("o")
t.until("sorted by oldest")
frame = t.until("\x1b[J")
check(frame.index("quiet") < frame.index("busy"), "oldest first", frame)
t.type("x\x1b[A")  # keys that mean nothing
token = subprocess.run([interlock, "acquire", "appears"], capture_output=True, text=True).stdout.strip()
t.until("appears")
t.until("3 locks")
subprocess.run([interlock, "release", token], check=True)
t.until("2 locks")
t.type("q")
t.until("\x1b[?1049l")
check(t.end() == 0, "exit status")
TEST

it "does not scroll a window of two rows"
check python3 - <<'TEST'
from terminal import *
import fcntl, struct, termios
t = Terminal(interlock, "top", "--interval", "1h")
t.until("2 locks")
fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 2, 80, 0, 0))
t.until("\x1b[H")
frame = t.until("\x1b[J")
while "2 locks" not in frame: frame = t.until("\x1b[J")
t.seen = ""
fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 2, 70, 0, 0))
frame = t.until("\x1b[J")
check(frame.count("\n") == 1, "two rows, one line break", frame)
t.type("q")
check(t.end() == 0, "exit status")
TEST

it "ends at once though the store hangs"
redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work" >/dev/null &
redis=$!
eventually redis-cli -s "$work/redis.sock" ping >/dev/null 2>&1
check python3 - "$work/redis.sock" "$redis" <<'TEST'
from terminal import *
t = Terminal(interlock, "top", "--interval", "50ms", "--url", f"redis+unix://{sys.argv[1]}?timeout=60s")
t.until("nothing is locked")
os.kill(int(sys.argv[2]), signal.SIGSTOP)
t.type("o")
t.until("sorted by oldest")
time.sleep(0.2)  # a look that hangs is under way; if not, q is no slower
t.type("q")
check(t.end() == 0, "exit status")
TEST
kill -KILL "$redis"

it "redraws at once when the window changes its size"
check python3 - <<'TEST'
from terminal import *
import fcntl, struct, termios
t = Terminal(interlock, "top", "--interval", "1h")
t.until("2 locks")
t.until("\x1b[J")
fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 30, 0, 0))
frame = t.until("\x1b[J")
lines = frame.split("\x1b[H")[-1].replace("\x1b[K", "").replace("\x1b[1m", "").replace("\x1b[0m", "").replace("\r", "").split("\n")
check(len(lines) <= 5 and all(len(line) <= 30 for line in lines), lines)
t.type("q")
check(t.end() == 0, "exit status")
TEST

it "SIGTERM and Ctrl-C give the terminal back"
check python3 - <<'TEST'
from terminal import *
import termios
def modes(t): return termios.tcgetattr(t.fd)[3] & (termios.ICANON | termios.ECHO)
for end, status in ("\x03", 0), (None, 143):
    t = Terminal(interlock, "top", "--interval", "50ms")
    t.until("\x1b[?1049h")
    t.until("busy")
    check(modes(t) == 0, "no echo, no lines, while it is shown")
    if end: t.type(end)
    else: os.kill(t.pid, signal.SIGTERM)
    t.until("\x1b[?25h\x1b[?1049l")
    end = time.monotonic() + 20
    while modes(t) != termios.ICANON | termios.ECHO and time.monotonic() < end: time.sleep(0.01)
    check(modes(t) == termios.ICANON | termios.ECHO, "as it was")
    check(t.end() == status, "exit status")
t = Terminal(interlock, "top", "--interval", "50ms", NO_COLOR="1")
t.until("busy")
check("\x1b[1m" not in t.until("busy"), "NO_COLOR")
t.type("q")
check(t.end() == 0, "exit status")
TEST
kill -TERM "$old" "$holder"
finish
