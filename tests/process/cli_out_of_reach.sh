#!/usr/bin/env bash
# Commands that become another user's, as under sudo: they can't be ended, so the lock is kept until they are gone.
source "$(dirname "$0")/cli_lib.bash"

# A user of no rights, and a program that makes root of that user.
user=4242
ordinary() { exec setpriv --reuid=$user --regid=$user --clear-groups env HOME=/tmp "$@"; }
become=$work/become
if ((EUID != 0)) || ! command -v setpriv >/dev/null; then
  echo "skipped: takes root and setpriv"
  exit 0
fi
chmod 755 "$work"
chown $user locks
install -m 4755 "$(command -v setpriv)" "$become"
if [[ $(ordinary "$become" --reuid=0 --regid=0 --clear-groups id -u) != 0 ]]; then
  echo "skipped: programs can't be setuid here"
  exit 0
fi
# It says its process id, and ends when there is a file $work/enough. Nobody but root can end it.
cat >long <<'LONG'
#!/usr/bin/env python3
import os, sys, time
with open(sys.argv[1] + ".new", "w") as file: file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
while os.path.exists(sys.argv[1]) and not os.path.exists(sys.argv[2]): time.sleep(0.02)
LONG
chmod 755 long

as_user() { (ordinary "$INTERLOCK" "$@"); }
taken() { as_user run -n -q -E 33 a -- true; test $? = 33; }

# start [OPTIONS…]: a root command under the lock `a`; $job is interlock run, $root the command, $guardian between them.
start() {
  rm -f root enough
  ordinary "$INTERLOCK" run "$@" a -- "$become" --reuid=0 --regid=0 --clear-groups "$work/long" "$work/root" "$work/enough" 2>message &
  job=$!
  eventually test -e root
  root=$(<root)
  guardian=$(pgrep -P "$job")
}
says() { grep -q -- "$1" message; }

it "keeps the lock until the command has ended, though interlock run was killed"
start --ttl 1500ms
kill -KILL "$job"
eventually says "a: interlock run was killed; 1 process of the command can't be ended ($root of root): Operation not permitted; the lock is kept"
before=${EPOCHREALTIME//[.,]/}
while ((${EPOCHREALTIME//[.,]/} - before < 3000000)); do check taken; done  # two TTLs
check alive "$root"
touch enough
expect 0 as_user run -w 20s a -- true
check gone "$root"
eventually gone "$guardian"

it "keeps the lock until all of the command's group has ended, though interlock run was killed"
rm -f root enough
ordinary "$INTERLOCK" run --ttl 1500ms a -- sh -c '"$@" & exec sleep 300' sh \
  "$become" --reuid=0 --regid=0 --clear-groups "$work/long" "$work/root" "$work/enough" 2>message &
job=$!
eventually test -e root
root=$(<root)
kill -KILL "$job"
# The other process of the group may be ending still, and is named as well then.
eventually says "interlock run was killed; .* of the command can't be ended (.*$root of root)"
before=${EPOCHREALTIME//[.,]/}
while ((${EPOCHREALTIME//[.,]/} - before < 1000000)); do check taken; done
touch enough
expect 0 as_user run -w 20s a -- true
check gone "$root"

it "keeps the lock until the command has ended, though the guardian was killed"
start --ttl 1500ms
kill -KILL "$guardian"
eventually says "1 process of the command can't be ended ($root of root): Operation not permitted; the lock is kept"
check alive "$root"
check taken
touch enough
ends "$job" 137
contains "$(<message)" "a: the process that guards the command was killed; the command ended by itself"
check gone "$root"
expect 0 as_user run -n a -- true

it "releases the lock when the command has ended, though the guardian was killed and nobody reads stderr"
mkfifo full
exec 9<>full
python3 - <<'FILL'
import os
os.set_blocking(9, False)
for size in 4096, 1:
    try:
        while True: os.write(9, b"." * size)
    except BlockingIOError:
        pass
os.set_blocking(9, True)
FILL
rm -f root enough
ordinary "$INTERLOCK" run --ttl 1500ms a -- "$become" --reuid=0 --regid=0 --clear-groups "$work/long" "$work/root" "$work/enough" 2>&9 &
job=$!
eventually test -e root
kill -KILL "$(pgrep -P "$job")"
check taken
touch enough
ends "$job" 137
expect 0 as_user run -n a -- true
exec 9>&-

it "keeps the lock while interlock run is stopped"
start --ttl 1500ms
kill -STOP "$job"
before=${EPOCHREALTIME//[.,]/}
while ((${EPOCHREALTIME//[.,]/} - before < 3000000)); do check taken; done
check alive "$root"
kill -CONT "$job"
touch enough
ends "$job" 76
contains "$(<message)" "it was kept until the command had ended by itself"
expect 0 as_user run -n a -- true

it "says that the command runs on if the lock is lost"
start --ttl 10m
expect 0 as_user break --yes a
eventually says "a: 1 process of the command can't be ended ($root of root): Operation not permitted; the command runs on without the lock"
check alive "$root"
check alive "$job"
touch enough
ends "$job" 76
contains "$(<message)" "the command ended only after that"
refute says "so the command was ended"

it "says that a signal does not reach the command"
start --ttl 10m
setpriv --reuid=$user --regid=$user --clear-groups kill -TERM "$job"
eventually says "a: signal 15 (Terminated) does not reach the command: 1 process of the command can't be ended ($root of root)"
check alive "$root"
touch enough
ends "$job" 0
finish
