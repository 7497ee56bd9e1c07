#!/usr/bin/env bash
# What the command line says about itself, and about mistakes.
source "$(dirname "$0")/cli_lib.bash"

it "shows help with examples when it is called alone"
expect 0 "$INTERLOCK"
contains "$out" "Examples:"
contains "$out" "interlock run nightly -- ./backup.sh"
help=$out
for command in run acquire extend release who list watch top serve deadlocks break repair schema config bench simulate torture; do
  contains "$help" "  $command "
  expect 0 "$INTERLOCK" "$command" --help
  contains "$out" "Usage: interlock $command"
  expect 0 "$INTERLOCK" help "$command"
  contains "$out" "Usage: interlock $command"
done
expect 0 "$INTERLOCK" --help
expect 0 "$INTERLOCK" --version
contains "$out" "interlock "

it "has one version, in all places that name it"
version=$(sed -n 's/^interlock //p' out)
top=$here/../..
contains "$(<"$top/include/interlock/version.hpp")" "#define INTERLOCK_VERSION \"$version\""
contains "$(head -n 1 "$top/docs/man/interlock.1")" "\"Interlock $version\""
contains "$(grep -m 1 '^## ' "$top/CHANGELOG.md")" "## $version"
for page in README.md docs/guide.md examples/CMakeLists.txt tests/package/consumer/CMakeLists.txt; do
  contains "$(<"$top/$page")" "find_package(interlock ${version%.*} CONFIG"
done

it "tells the formats of its stores, and does not load the full program for it"
cp "$INTERLOCK" alone
expect 0 ./alone --version
formats=", $(sed -n 's/^formats: //p' out),"
told=0
for store in etcd file postgres redis; do
  [[ $formats == *", $store "* ]] || continue  # left out of the build
  last=$(printf '%s\n' "$here/../formats/$store"-* | sed 's/.*-//; s/\..*//' | sort -n | tail -n 1)
  contains "$formats" ", $store $last,"
  told=$((told + 1))
done
same "$(grep -o ',' <<<"$formats" | wc -l)" $((told + 1))
expect 0 "$INTERLOCK" acquire a
"$INTERLOCK" release "$out"
contains "$formats" ", file $(sed -n 's/^{"interlock":\([0-9]*\),.*/\1/p' locks/*.json | head -n 1),"
rm alone

it "suggests the nearest command for one that is not there"
expect 64 "$INTERLOCK" rnu nightly -- true
contains "$err" 'did you mean "run"?'
expect 64 "$INTERLOCK" --url memory: relese x
contains "$err" '"release"'
expect 64 "$INTERLOCK" --nonsense

it "names an option before the command that is not there, and the nearest one that is"
for words in '--urll file:///x who n' '--urll=file:///x who n' '--urll file:///x' '--urll'; do
  # shellcheck disable=SC2086
  expect 64 "$INTERLOCK" $words
  contains "$err" 'no option --urll'
  contains "$err" 'did you mean --url?'
done
expect 64 "$INTERLOCK" -u redis://h list
contains "$err" 'no option -u before the command; for a store there is --url'
expect 64 "$INTERLOCK" who --jsn n
contains "$err" 'there is no option --jsn; did you mean --json? (see: interlock who --help)'
for pair in --nowait=--no-wait --tll=--ttl --quite=--quiet; do
  expect 64 "$INTERLOCK" run "${pair%=*}" 10s a -- touch ran
  contains "$err" "there is no option ${pair%=*}; did you mean ${pair#*=}? (see: interlock run --help)"
done
refute test -e ran
expect 64 "$INTERLOCK" deadlocks --nothing-like-it
contains "$err" 'there is no option --nothing-like-it (see: interlock deadlocks --help)'
expect 64 "$INTERLOCK" --json lsit
contains "$err" 'did you mean "list"?'
expect 0 "$INTERLOCK" --json list

it "completes all options in bash and fish"
completions=$here/../../completions
for_bash() {  # COMMAND
  bash -c 'source "$1/interlock.bash"; COMP_WORDS=(interlock "$2" --); COMP_CWORD=2; _interlock 2>/dev/null; printf "%s\n" "${COMPREPLY[@]}"' - "$completions" "$1"
}
for_fish() { fish --no-config -c 'source "$argv[1]/interlock.fish"; complete -C "interlock $argv[2] --" | cut -f1' -- "$completions" "$1"; }
shells=(bash)
if command -v fish >/dev/null; then
  check fish -n "$completions/interlock.fish"
  shells+=(fish)
else
  echo "no fish: its completion was left out"
fi
for command in run acquire extend release who list watch top serve deadlocks break repair schema config bench simulate torture; do
  [[ $command == simulate ]] && help=time || help=
  # shellcheck disable=SC2086
  "$INTERLOCK" "$command" $help --help |
    LC_ALL=C grep -oE '^ +(-[a-zA-Z],)?--[a-z-]+' | LC_ALL=C grep -oE -- '--[a-z-]+' | sort >options
  check test -s options
  for shell in "${shells[@]}"; do
    "for_$shell" "$command" | sort >completed
    same "$(comm -23 options completed | xargs)" ""
  done
done
if [[ ${shells[*]} == *fish* ]]; then
  in_fish() { fish --no-config -c 'source "$argv[1]/interlock.fish"; complete -C "$argv[2]" | cut -f1' -- "$completions" "$1" | xargs; }
  contains "$(in_fish 'interlock --url file:///x r')" run
  contains "$(in_fish 'interlock run a -- cat /et')" /etc/
  same "$(in_fish 'interlock top --sort o')" oldest
fi

it "refuses a bare number where a time is meant, and says what would do"
for arguments in '-w 10' '--ttl 30' '--wait=5' '-w 10x' '-w ten' '--ttl -5s'; do
  # shellcheck disable=SC2086
  expect 64 "$INTERLOCK" run $arguments a -- touch ran
  contains "$err" "interlock: "
done
expect 64 "$INTERLOCK" run -w 10 a -- touch ran
contains "$err" 10s
expect 64 "$INTERLOCK" acquire a --ttl 300
refute test -e ran
for time in 10s 1m30s 250ms 1h 1.5s; do expect 0 "$INTERLOCK" run -w $time --ttl $time a -- true; done

it "refuses what makes no sense, in one line, with 64"
expect 64 "$INTERLOCK" run
expect 64 "$INTERLOCK" run a
contains "$err" " -- "
expect 64 "$INTERLOCK" run a true
expect 64 "$INTERLOCK" run a --
expect 64 "$INTERLOCK" run --
for words in '-n -- ./backup.sh' '-w 1s -- ./backup.sh --full'; do
  # shellcheck disable=SC2086
  expect 64 "$INTERLOCK" run $words
  contains "$err" "no name: interlock run NAME -- ${words#*-- }"
done
expect 0 "$INTERLOCK" run -- -name -- true
expect 0 "$INTERLOCK" run -- -name true
expect 64 "$INTERLOCK" run --no-such-option a -- true
expect 64 "$INTERLOCK" run -n -w 1s a -- true
expect 64 "$INTERLOCK" run --slots 0 a -- true
expect 64 "$INTERLOCK" run --slots x a -- true
expect 64 "$INTERLOCK" run --slots 2 --shared a -- true
expect 64 "$INTERLOCK" run -E 256 a -- true
expect 64 "$INTERLOCK" run --at-least 5 a -- true
expect 64 "$INTERLOCK" run --at-least 0s a -- true
for several in '--slots 2' --shared; do
  # shellcheck disable=SC2086
  expect 64 "$INTERLOCK" run --at-least 1m $several a -- true
  contains "$err" "--at-least can't be combined with ${several%% *}"
done
expect 64 "$INTERLOCK" run --ttl 0s a -- true
expect 64 "$INTERLOCK" who
expect 64 "$INTERLOCK" who ''
expect 64 "$INTERLOCK" release
expect 64 "$INTERLOCK" release nonsense
expect 64 "$INTERLOCK" extend ''
expect 64 "$INTERLOCK" acquire a --pid 0
expect 64 "$INTERLOCK" list a b
expect 64 "$INTERLOCK" break
expect 64 "$INTERLOCK" run --url nonsense a -- true
same "$(wc -l <<<"$err")" 1
expect 64 "$INTERLOCK" run --url memory: a -- true
contains "$err" memory

it "says with 69 that the store can't be used"
touch occupied
expect 69 "$INTERLOCK" run --url "file://$work/occupied" a -- true
contains "$err" occupied
mkdir open && chmod 0777 open
expect 69 "$INTERLOCK" list --url "file://$work/open"
contains "$err" "the directory $work/open is open to other users; name one that does not exist yet, or, if this one is for locks alone: chmod 700 $work/open"
chmod 700 open
expect 0 "$INTERLOCK" list --url "file://$work/open"

it "finds the store by --url, then INTERLOCK_URL, then in one place per user, however they came in"
uses() { "$INTERLOCK" list --json "${@}" | python3 -c 'import json,sys; print(json.load(sys.stdin)["store"])'; }
mkdir -m 0700 one
contains "$(uses --url "file://$work/one")" "$work/one"
contains "$(uses)" "$work/locks"
contains "$(INTERLOCK_URL='' uses)" "/interlock-$(id -u)"
same "$(INTERLOCK_URL='' XDG_RUNTIME_DIR="$work" uses)" "$(INTERLOCK_URL='' uses)"
mkdir -m 0700 'run time%'
check "$INTERLOCK" run a --url "file://$work/run%20time%25" -- true
check test -d 'run time%/wake'

it "is quiet unless it is asked to tell, and then tells on stderr"
expect 0 "$INTERLOCK" run a -- true
same "$out$err" ""
expect 0 "$INTERLOCK" -v run a -- true
same "$out" ""
contains "$err" granted
contains "$err" released
refute grep -q $'\033' "$work/err"

it "logs what was asked for, a line each, for people and for programs"
expect 0 "$INTERLOCK" --log-level info run a -- true
check grep -Eq '^time=\S+ level=info event=opened store=file:' err
refute grep -q granted err
expect 0 "$INTERLOCK" run --log-level debug --log-format json 'it is "a"' -- true
check python3 - <<'CHECK'
import json
lines = [json.loads(line) for line in open("err")]
events = [line["event"] for line in lines]
assert events[0] == "opened" and {"asked", "granted", "released"} <= set(events), events
granted = lines[events.index("granted")]
assert granted["lock"] == 'it is "a"' and granted["level"] == "debug" and granted["waited_ms"] >= 0, granted
assert granted["time"].startswith("2") and len(granted["owner"]) == 8, granted
CHECK
hold a
expect 75 "$INTERLOCK" --log-level=warning run -w 10ms a -- true
check grep -Eq '^time=\S+ level=warning event=timed_out lock=a ' err
expect 0 "$INTERLOCK" --log-level warning --log-format json break --yes a
check python3 -c 'import json; assert [json.loads(x)["event"] for x in open("err") if x[0] == "{"] == ["evicted"]'
ends "$holder" 76
expect 64 "$INTERLOCK" --log-level loud list
contains "$err" warning
expect 64 "$INTERLOCK" --log-format xml list
it "nothing that it opens takes the place of a closed stdin, stdout or stderr"
rm -f ran
expect 0 bash -c 'exec "$INTERLOCK" run -v closed -- touch ran <&- >&- 2>&-'
check test -e ran
expect 74 bash -c 'exec "$INTERLOCK" acquire closed >&-'
check free closed

it "several names are locked together"
expect 0 "$INTERLOCK" run one two -- "$INTERLOCK" who two
expect 0 "$INTERLOCK" run --help
contains "$out" "several names"
finish
