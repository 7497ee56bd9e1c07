#!/usr/bin/env bash
# What a person at a terminal sees and types.
source "$(dirname "$0")/cli_lib.bash"

export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here

it "says where it looked when nothing is held, to a person"
check python3 - "$INTERLOCK_URL" <<'TEST'
from terminal import *
t = Terminal(interlock, "list")
t.until("nothing is held in " + sys.argv[1])
check(t.end() == 0, "exit status")
t = Terminal(interlock, "list", "billing:")
t.until("nothing that begins with 'billing:' is held in " + sys.argv[1])
check(t.end() == 0, "exit status")
t = Terminal("sh", "-c", '"$0" list >listed; echo then', interlock)
t.until("nothing is held in")
check(t.end() == 0 and open("listed").read() == "", "stdout is for the locks")
TEST
expect 0 "$INTERLOCK" list
same "$out$err" ""

it "shows who is in the way after a second, on one line that goes away again"
hold a --label "the nightly run"
"$INTERLOCK" run a -- true &
eventually waiting a 1
check python3 - <<'TEST'
from terminal import *
t = Terminal(interlock, "run", "-w", "4s", "a", "--", "true")
began = time.monotonic()
t.until("waiting for a: held by ")
check(time.monotonic() - began > 0.9, "too early")
t.until("(the nightly run) for ")
t.until(", 1 ahead of you")
t.until("\r\x1b[K", "the line is renewed or cleared")
check(t.end() == 75, "exit status")
check("\n" not in t.seen.split("interlock:")[0], t.seen)
# Ctrl-C while waiting
t = Terminal(interlock, "run", "a", "--", "true")
t.until("waiting for a")
t.type("\x03")
check(t.end() == -signal.SIGINT, "Ctrl-C")  # dies of it, so that a script stops, too
TEST
check waiting a 1
let_go

it "asks before it breaks a lock, on a terminal"
hold a
check python3 - <<'TEST'
from terminal import *
t = Terminal(interlock, "break", "a")
t.until("held by")
t.until("Break a? [y/N]")
t.type("n\n")
check(t.end() == 1, "declined")
TEST
check held a
check python3 - <<'TEST'
from terminal import *
t = Terminal(interlock, "break", "a")
t.until("Break a? [y/N]")
t.type("y\n")
t.until("taken away")
check(t.end() == 0, "broken")
TEST
ends "$holder" 76

it "watch redraws, and q or Ctrl-C quits and leaves the terminal as it was"
hold w --label watched
check python3 - <<'TEST'
from terminal import *
import subprocess, termios
for key in "q", "\x03":
    t = Terminal(interlock, "watch", "--interval", "50ms")
    before = termios.tcgetattr(t.fd)[3]
    t.until("\x1b[?1049h")
    t.until("watched")
    t.until("watched", "drawn again")
    token = subprocess.run([interlock, "acquire", "appears"], capture_output=True, text=True).stdout.strip()
    t.until("appears")
    subprocess.run([interlock, "release", token], check=True)
    t.type(key)
    t.until("\x1b[?1049l")
    check(t.end() == 0, "exit status")
t = Terminal(interlock, "watch", "--interval", "50ms", NO_COLOR="1")
t.until("watched")
check("\x1b[1m" not in t.until("watched"), "NO_COLOR")
t.type("q")
check(t.end() == 0, "exit status")
TEST
let_go

it "hands the terminal to the command, and Ctrl-C reaches it"
check python3 - <<'TEST'
from terminal import *
t = Terminal(interlock, "run", "t", "--", "sh", "-c", "echo ready; read line; echo got=$line; exit 3")
t.until("ready")
t.type("hello\n")
t.until("got=hello")
check(t.end() == 3, "exit status")
t = Terminal(interlock, "run", "t", "--", "sh", "-c", "echo ready; exec sleep 100")
t.until("ready")
t.type("\x03")
check(t.end() == -signal.SIGINT, "dies of it, so that a script stops, too")
TEST
check free t

it "Ctrl-Z stops both, fg goes on with both"
check python3 - <<'TEST'
from terminal import *
t = Terminal("bash", "--norc", "--noprofile", "-i")
t.until("$ ")
t.type(interlock + " run t -- sh -c 'echo rea\"\"dy; read line; echo got=$line; exit 3'\n")
t.until("ready")
t.type("\x1a")
t.until("Stopped")
t.until("$ ")
t.type("fg\n")
t.until("interlock run")
t.type("again\n")
t.until("got=again")
t.until("$ ")
t.type("echo status=$?\n")
t.until("status=3")
# In the background it has no terminal; once it wants one, it stops like any job.
t.type(interlock + " run t -- sh -c 'read line; echo got=$line' &\n")
t.until("$ ")
end = time.monotonic() + 20
while True:
    t.type("jobs\n")
    if "Stopped" in t.until("$ "): break
    check(time.monotonic() < end, "never stopped")
t.type("fg\n")
t.type("third\n")
t.until("got=third")
# A pipeline keeps the terminal for the others, and the command gets it when it reads.
t.type(interlock + " run t -- sh -c 'echo one; echo two' | { read x; read y </dev/tty; echo $x-$y; }\n")
t.type("typed\n")
t.until("one-typed")
# In a script, too, the command may read.
t.type("sh -c '" + interlock + " run t -- head -n 1; echo after=$?'\n")
t.type("for-head\n")
t.until("after=0")
t.type("exit\n")
t.end()
TEST
check free t
it "hands the terminal to a command whose stdin is something else"
check python3 - <<'TEST'
from terminal import *
t = Terminal("bash", "-c", "seq 9 | " + interlock + " run t -- sh -c 'read line </dev/tty; echo got=$line; exit 3'; echo status=$?")
t.type("typed\n")
t.until("got=typed")
t.until("status=3")
t.end()
TEST
check free t

it "ends the script around it when Ctrl-C ends a command that has the terminal"
check python3 - <<'TEST'
from terminal import *
t = Terminal("bash", "-c", interlock + " run t -- sh -c 'read a; echo first; read b'; echo nex''t")
t.type("line\n")
t.until("first")  # from here on it has the terminal
t.type("\x03")
check(t.end() == -signal.SIGINT, "the script goes on")
check("next" not in t.seen, t.seen)
TEST
check free t

it "hangs up on a command that wants a terminal which no shell can give to it"
check python3 - <<'TEST'
from terminal import *
t = Terminal("python3", "-c", """
import os, sys, time
middle = os.fork()
if middle == 0:
    os.setpgid(0, 0)
    here = os.getpid()
    if os.fork() == 0:
        while os.getppid() == here: time.sleep(0.01)  # from then on the group is an orphan
        os.execv(sys.argv[1], [sys.argv[1], "run", "t", "--", "sh", "-c", "read line </dev/tty"])
    os._exit(0)
os.waitpid(middle, 0)
while not os.path.exists("over"): time.sleep(0.02)
""", interlock)
t.until("t: the command wants the terminal, which no shell can give to it")
end = time.monotonic() + 20
while os.system(interlock + " who t >who 2>&1") == 0: check(time.monotonic() < end, "it never ended")
open("over", "w").close()
t.end()
TEST
check free t

if unshare -rpf --mount-proc true 2>/dev/null; then
  it "leaves the terminal to a caller outside of its PID namespace, as nothing inside could give it back"
  check python3 - <<'TEST'
from terminal import *
t = Terminal("bash", "-c", "unshare -rpf --mount-proc " + interlock + " run t -- true; read line; echo got=$line")
t.type("typed\n")
t.until("got=typed")
t.end()
TEST
fi
finish
