# For the tests of the command line: source it, say `it "does this"` and check that; end with `finish`.
# Every test file has a store of its own in a temporary directory. Waiting is always for a
# condition, and always bounded.
set -u

: "${INTERLOCK:?the command to test}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/interlock-cli.XXXXXX")
export INTERLOCK_URL="file://$work/locks"
unset XDG_RUNTIME_DIR INTERLOCK_RESOURCE INTERLOCK_FENCE INTERLOCK_OWNER
cd "$work" || exit 1
mkdir -m 0700 locks  # what only looks at a store does not make it

failures=0
what="(nothing said yet)"

cleanup() {
  local pid
  for pid in $(jobs -p); do kill -CONT "$pid" 2>/dev/null; kill -KILL "$pid" 2>/dev/null; done
  wait 2>/dev/null
  cd / && rm -rf "$work"
}
trap cleanup EXIT

it() { what=$1; }

fail() {
  failures=$((failures + 1))
  printf 'FAILED: %s: %s\n' "$what" "$*"
  [[ -z ${INTERLOCK_TEST_FAIL_FAST:-} ]] || exit 1
}

finish() {
  ((failures == 0)) && echo "all is well"
  exit $((failures == 0 ? 0 : 1))
}

# expect STATUS COMMAND…: its stdout and stderr are in $out and $err afterwards.
expect() {
  local wanted=$1 status
  shift
  "$@" >"$work/out" 2>"$work/err" </dev/null
  status=$?
  out=$(<"$work/out")
  err=$(<"$work/err")
  ((status == wanted)) || fail "exit status $status, not $wanted: $* (stderr: $err)"
}

# check COMMAND…: must succeed. refute: must not.
check() { "$@" || fail "not so: $*"; }
refute() { ! "$@" || fail "should not be: $*"; }
# same GOT WANTED
same() { [[ $1 == "$2" ]] || fail "got '$1', not '$2'"; }
# contains TEXT PART
contains() { [[ $1 == *"$2"* ]] || fail "'$2' is not in '$1'"; }

# eventually COMMAND…: true within 20 seconds. INTERLOCK_TEST_FAIL_FAST: the first failure ends the test.
eventually() {
  local end=$((SECONDS + 20))
  until "$@"; do
    if ((SECONDS >= end)); then
      fail "not within 20 seconds: $*"
      return 1
    fi
    sleep 0.02
  done
}

# ends PID STATUS: a background job ends with this status, within 20 seconds.
ends() {
  eventually gone "$1" || return 1
  wait "$1"
  local status=$?
  ((status == $2)) || fail "process $1 ended with $status, not $2"
}

# A zombie is gone, too.
gone() {
  local state
  state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) || return 0
  [[ $state == [ZX]* || -z $state ]]
}
alive() { ! gone "$1"; }

held() { "$INTERLOCK" who -- "$1" >/dev/null 2>&1; }
free() { ! held "$1"; }
waiters() { "$INTERLOCK" list --json -- "$1" | python3 -c 'import json,sys
print(sum(len(r["waiters"]) for r in json.load(sys.stdin)["resources"]))'; }
waiting() { [[ $(waiters "$1") == "$2" ]]; }
# The process that the store holds responsible.
holder_pid() { "$INTERLOCK" who --json -- "$1" | python3 -c 'import json,sys
print(json.load(sys.stdin)["resources"][0]["holders"][0]["pid"])'; }

# hold NAME [OPTIONS…]: a job in the background that holds the lock until `let_go` or a signal.
# Its process is $holder, the process of its command $command.
hold() {
  local name=$1
  shift
  rm -f "$work/command"
  "$INTERLOCK" run "$@" -- "$name" -- sh -c 'echo $$ >command.new; mv command.new command; exec sleep 300' &
  holder=$!
  eventually test -e "$work/command"
  command=$(<"$work/command")
}
let_go() {
  kill -TERM "$holder" 2>/dev/null
  eventually gone "$holder"
  wait "$holder" 2>/dev/null
}
