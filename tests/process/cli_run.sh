#!/usr/bin/env bash
# interlock run: what it gives the command, and what it gives back.
source "$(dirname "$0")/cli_lib.bash"

it "ends with the command's own exit status"
expect 0 "$INTERLOCK" run a -- true
expect 7 "$INTERLOCK" run a -- sh -c 'exit 7'

it "ends with 128+n if a signal ended the command"
expect 143 "$INTERLOCK" run a -- sh -c 'kill -TERM $$'
expect 137 "$INTERLOCK" run a -- sh -c 'kill -KILL $$'

it "says like a shell that a command is not there or can't be run"
expect 127 "$INTERLOCK" run a -- no-such-command-here
contains "$err" "no-such-command-here: command not found"
touch plain
expect 126 "$INTERLOCK" run a -- ./plain
expect 126 "$INTERLOCK" run a -- /
check free a

it "gives the command the resource, the fence and the owner"
expect 0 "$INTERLOCK" run a -- sh -c 'echo "$INTERLOCK_RESOURCE $INTERLOCK_FENCE $INTERLOCK_OWNER"'
read -r resource fence owner <<<"$out"
same "$resource" a
check test "$fence" -gt 0
check test "${#owner}" = 8
expect 0 "$INTERLOCK" run a -- sh -c 'echo "$INTERLOCK_FENCE $INTERLOCK_OWNER"'
read -r next_fence next_owner <<<"$out"
check test "$next_fence" -gt "$fence"
check test "$next_owner" != "$owner"

it "tells the command of the store it was given"
expect 0 "$INTERLOCK" run --url "file://$work/other" a -- sh -c 'echo "$INTERLOCK_URL"'
same "$out" "file://$work/other"

it "passes stdin, stdout and stderr through"
same "$(echo hello | "$INTERLOCK" run a -- sh -c 'cat; echo error >&2' 2>errors)" hello
same "$(<errors)" error

it "passes arguments through untouched"
expect 0 "$INTERLOCK" run a -- printf '%s|' -n --wait 'a  b' '' -- '*'
same "$out" '-n|--wait|a  b||--|*|'

it "runs the command in a process group of its own, and leaks no descriptors into it"
expect 0 "$INTERLOCK" run a -- sh -c 'sed "s/.*) //" /proc/$$/stat | { read -r state parent group rest; test $group = $$; }'
expect 0 "$INTERLOCK" run a -- ls -v /proc/self/fd
same "$out" "$(ls -v /proc/self/fd </dev/null 2>/dev/null)"

it "starts the command with the signal mask it was given itself"
mask=$(grep SigBlk /proc/self/status)
expect 0 "$INTERLOCK" run a -- grep SigBlk /proc/self/status
same "$out" "$mask"

it "gives the lock back afterwards"
check free a

it "gives up at once with -n, after a while with -w, with 75 or what -E says"
hold busy --label "on purpose"
expect 75 "$INTERLOCK" run -n busy -- touch ran
contains "$err" busy
before=${EPOCHREALTIME//[.,]/}
expect 75 "$INTERLOCK" run -w 300ms busy -- touch ran
check test $((${EPOCHREALTIME//[.,]/} - before)) -ge 300000
expect 9 "$INTERLOCK" run -n -E 9 busy -- touch ran
expect 0 "$INTERLOCK" run --wait 100ms -E 0 busy -- touch ran
refute test -e ran
check waiting busy 0

it "waits for the lock if it may"
"$INTERLOCK" run -w 20s busy -- touch ran &
waiter=$!
eventually waiting busy 1
let_go
ends "$waiter" 0
check test -e ran

it "takes several locks, all or none"
hold b
expect 75 "$INTERLOCK" run -n a --also b -- true
check free a
expect 75 "$INTERLOCK" run -w 100ms a --also c --also b -- true
check free a
check free c
let_go
expect 0 "$INTERLOCK" run -n a --also b --also a --also '[c,d]' -- sh -c '
  "$0" who a && "$0" who b && "$0" who "[c,d]" && ! "$0" run -n b -- true' "$INTERLOCK"

it "shares a lock with others that share it"
hold shared -s
expect 0 "$INTERLOCK" run -n --shared shared -- true
expect 75 "$INTERLOCK" run -n shared -- true
let_go
expect 0 "$INTERLOCK" run -n shared -- true

it "lets N in with --slots N, and not one more"
hold pool --slots 2
first=$holder
hold pool --slots 2
expect 75 "$INTERLOCK" run -n --slots 2 pool -- true
expect 64 "$INTERLOCK" run -n --slots 3 pool -- true
contains "$err" pool
let_go
expect 0 "$INTERLOCK" run -n --slots 2 pool -- true
holder=$first
let_go

it "serves waiters in the order they came, higher priority first"
hold line
for name in one two three; do
  "$INTERLOCK" run line -- sh -c 'echo $0 >>order' $name &
  last=$!
  eventually waiting line "$(case $name in one) echo 1 ;; two) echo 2 ;; three) echo 3 ;; esac)"
done
"$INTERLOCK" run --priority 5 line -- sh -c 'echo urgent >>order' &
eventually waiting line 4
let_go
ends "$last" 0
same "$(paste -sd' ' order)" "urgent one two three"

it "excludes what is below a name, and the other way round"
hold table/row
expect 75 "$INTERLOCK" run -n table -- true
expect 0 "$INTERLOCK" run -n table/other -- true
let_go
hold table
expect 75 "$INTERLOCK" run -n table/row -- true
let_go

it "lets one identity in twice"
expect 0 "$INTERLOCK" run -n --identity me again -- "$INTERLOCK" run -n --identity me again -- true
expect 75 "$INTERLOCK" run -n --identity me again -- "$INTERLOCK" run -n again -- true

it "takes as many names as a lock may have, however long"
names=()
for ((i = 0; i < 1024; ++i)); do names+=("$(printf '%0500d' $i)"); done
with_names() { "$INTERLOCK" run "${names[@]}" "$@"; }
if (($(ulimit -n) < 4096)); then  # each may take a file of the store
  expect 69 with_names -- true
  contains "$err" "ulimit -n"
else
  expect 0 with_names -- sh -c 'echo "$INTERLOCK_RESOURCE"; exec true'
  same "$out" "${names[0]}"
  check free "${names[1023]}"
fi
expect 0 "$INTERLOCK" run "${names[@]:0:100}" -- sh -c 'echo "$INTERLOCK_RESOURCE"'
same "$out" "${names[0]}"
rm -f ran
expect 64 with_names one-more -- touch ran
contains "$err" "1024 are the most"
refute test -e ran

it "takes any name"
for name in 'a b' "it's" '"quoted"' 'a\b' '$(touch pwned)' '../../etc/passwd' '🔒 schloß' '-n' '--wait' '/' '*' run list '++' '[x]' '%41'; do
  expect 0 "$INTERLOCK" run -- "$name" sh -c 'test "$INTERLOCK_RESOURCE" = "$1" && "$0" who -- "$1"' "$INTERLOCK" "$name"
  check free "$name"
done
refute test -e pwned
expect 64 "$INTERLOCK" run '' -- true
expect 64 "$INTERLOCK" run $'two\nlines' -- true
expect 64 "$INTERLOCK" run "$(printf 'x%.0s' {1..513})" -- true
finish
