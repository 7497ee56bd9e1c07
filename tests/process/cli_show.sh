#!/usr/bin/env bash
# who, list, watch, break: for people, and as JSON for programs.
source "$(dirname "$0")/cli_lib.bash"

it "who names the holder, and says with 1 that there is none"
expect 1 "$INTERLOCK" who a b
same "$out" "a: free in $INTERLOCK_URL
b: free in $INTERLOCK_URL"
hold a --label "the nightly run"
expect 0 "$INTERLOCK" who a b
contains "$out" "a: held by $(uname -n):"
contains "$out" "(the nightly run)"
contains "$out" "b: free in $INTERLOCK_URL"
expect 1 "$INTERLOCK" who --json b

it "list shows holders and waiters, with their place, age and time left"
"$INTERLOCK" run a --label second -- true &
second=$!
eventually waiting a 1
"$INTERLOCK" run -s --priority -1 a --label third -- true &
third=$!
eventually waiting a 2
expect 0 "$INTERLOCK" list
check grep -Eq '^NAME +STATE +MODE +HOST:PID +AGE +LEFT +LABEL$' out
check grep -Eq '^a +held +exclusive +\S+:[0-9]+ +\S+ +\S+ +the nightly run$' out
check grep -Eq '^a +waiting 1 +exclusive +.* second$' out
check grep -Eq '^a +waiting 2 +shared +.* third$' out
refute grep -q $'\033' out

it "list --json has the documented keys"
expect 0 "$INTERLOCK" list --json
check python3 - "$out" <<'CHECK'
import json, sys
d = json.loads(sys.argv[1])
assert list(d) == ["store", "resources"] and d["store"].startswith("file:"), d
(a,) = d["resources"]
assert list(a) == ["res", "capacity", "holders", "waiters"] and a["res"] == "a" and a["capacity"] == 0, a
(h,) = a["holders"]
common = {"res", "exp", "pid", "who", "owner_id", "identity", "actor", "host", "owner", "mode", "slots", "ancestor", "priority", "age_ms", "remaining_ms"}
assert set(h) == common | {"fence"}, h
assert h["mode"] == "exclusive" and h["who"] == "the nightly run" and h["pid"] > 0 and h["fence"] > 0, h
assert open(f"/proc/{h['pid']}/comm").read() == "interlock-guard\n", h
assert len(h["owner"]) == 8 and h["age_ms"] >= 0 and 0 < h["remaining_ms"] <= 30000, h
w = a["waiters"]
assert all(set(x) == common | {"place"} for x in w), w
assert [(x["place"], x["who"], x["mode"], x["priority"]) for x in w] == [
    (1, "second", "exclusive", 0), (2, "third", "shared", -1)], w
CHECK

it "says in JSON that nothing is held by an empty array"
expect 0 "$INTERLOCK" list --json nobody
contains "$out" '"resources":[]'
expect 1 "$INTERLOCK" who --json nobody
contains "$out" '"resources":[]'

it "list shows the owner's full number to nobody"
for form in --json --all; do
  expect 0 "$INTERLOCK" list $form
  refute grep -Eq '[0-9a-f]{32}' out
done

it "list takes a prefix, and hides what is only there for something below it"
hold_a=$holder
hold 'top/sub'
expect 0 "$INTERLOCK" list to
refute grep -Eq '^a ' out
check grep -Eq '^top/sub ' out
refute grep -Eq '^top ' out
expect 0 "$INTERLOCK" list --all to
check grep -Eq '^top +held +below' out
expect 0 "$INTERLOCK" who top
contains "$out" "something below it is held"
let_go
expect 0 "$INTERLOCK" list nothing-like-it
same "$out" ""

it "break asks, or wants --yes, and names whom it evicts"
expect 64 "$INTERLOCK" break a
contains "$err" "held by"
contains "$err" "--yes"
check alive "$hold_a"
expect 0 "$INTERLOCK" break --yes a
contains "$err" "the nightly run"
contains "$err" "taken away"
ends "$hold_a" 76
ends "$second" 0
ends "$third" 0
expect 1 "$INTERLOCK" break --yes a
contains "$err" "nobody holds it"

it "break takes the lock from all that share it"
expect 0 "$INTERLOCK" acquire -s shared
expect 0 "$INTERLOCK" acquire -s shared
expect 0 "$INTERLOCK" break -y shared
check free shared

# row 4.5
it "list --json shows of each record what is locked, until when, by which process and what for"
export INTERLOCK_URL="file://$work/records"
before=$(date +%s)
hold file_A --label ingest-job --ttl 100s
"$INTERLOCK" run -w 1m file_A --ttl 50s -- true 2>waiting &
next=$!
eventually waiting file_A 1
expect 0 "$INTERLOCK" list --json
check python3 - "$out" "$before" "$(date +%s)" "$(holder_pid file_A)" <<'CHECK'
import json, math, sys
(lock,) = json.loads(sys.argv[1])["resources"]
before, after, pid = (int(n) for n in sys.argv[2:])
(held,), (waits,) = lock["holders"], lock["waiters"]
assert {key: held[key] for key in ("res", "pid", "who")} == {"res": "file_A", "pid": pid, "who": "ingest-job"}, held
assert type(held["exp"]) is int and before + 100 <= held["exp"] <= after + 101, (held, before, after)
assert (waits["res"], waits["who"]) == ("file_A", "true") and waits["pid"] not in (0, pid), waits
assert type(waits["exp"]) is int and before < waits["exp"], waits
for record in (held, waits):
    assert abs(record["exp"] - after - record["remaining_ms"] / 1000) < 20, (record, after)
    assert not {"resource", "label"} & set(record), record
CHECK
let_go
ends "$next" 0
export INTERLOCK_URL="file://$work/locks"

it "list --json says null for the end of a record that never expires"
redis-server --port 0 --unixsocket "$work/foreign.sock" --save '' --dir "$work" >/dev/null &
foreign=$!
eventually redis-cli -s "$work/foreign.sock" ping >/dev/null 2>&1
redis-cli -s "$work/foreign.sock" set interlock:theirs token >/dev/null
expect 0 "$INTERLOCK" list --json --url "redis+unix://$work/foreign.sock"
check python3 - "$out" <<'CHECK'
import json, sys
(lock,) = json.loads(sys.argv[1])["resources"]
(held,) = lock["holders"]
assert held["res"] == "theirs" and held["pid"] == 0 and "another program" in held["who"], held
assert held["exp"] is None and held["remaining_ms"] is None, held
CHECK
kill -TERM "$foreign"
eventually gone "$foreign"

it "odd names come out as they went in"
for name in 'a b' "it's" '"q"' 'back\slash' '🔒' '-dash' 'x/y' '[z]' '%41'; do
  expect 0 "$INTERLOCK" acquire --ttl 1m --label "label: $name" -- "$name"
done
expect 0 "$INTERLOCK" list --json
check python3 - "$out" <<'CHECK'
import json, sys
names = {r["res"]: [h["who"] for h in r["holders"] if not h["ancestor"]] for r in json.loads(sys.argv[1])["resources"]}
for name in ['a b', "it's", '"q"', 'back\\slash', '🔒', '-dash', 'x/y', '[z]', '%41']:
    assert names[name] == ["label: " + name], (name, names)
CHECK

it "sends nothing to a terminal that it would act on or not show"
export INTERLOCK_URL="file://$work/odd"
odd=$'turned\u202eround\u2066\u200e\u061czero\u200bwidth\ufeff\u2028end'
expect 0 "$INTERLOCK" acquire --ttl 1h --label LABEL -- "$odd"
token=$out
expect 0 "$INTERLOCK" acquire --ttl 1h --actor me --json -- "$odd 2"
cp out acquired
# No call of ours writes them, but somebody else may.
python3 - "$work"/odd/*.json <<'EDIT'
import sys
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read().replace("LABEL", "\x7f\x80\x9b31m\x85\u202e")
    open(path, "w", encoding="utf-8").write(text)
EDIT
: >all
for command in list 'list --json' 'who -- NAME' 'who --json -- NAME' 'deadlocks --json' 'config --json' 'top --json' top \
  'run -n NAME -- true' 'run -n --log-level debug --log-format json NAME -- true' 'run -n -v NAME -- true' 'break NAME' 'break -y NAME'; do
  words=()
  for word in $command; do words+=("${word/#NAME/$odd}"); done
  timeout 20 "$INTERLOCK" "${words[@]}" >one 2>&1 </dev/null
  [[ $command == *json* && $command != run* ]] && check python3 -m json.tool one /dev/null
  cat one >>all
  [[ $command == 'list --json' ]] && cp one listed
done
INTERLOCK_URL="file://$work/$odd" "$INTERLOCK" config >>all 2>&1
INTERLOCK_URL="file://$work/$odd" "$INTERLOCK" config --check --json >>all 2>&1
"$INTERLOCK" "$odd" >>all 2>&1
cat acquired >>all
check python3 - "$odd" <<'CHECK'
import json, re, sys
bad = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
text = open("all", encoding="utf-8", newline="\n").read()
assert not bad.search(text), ascii(text[max(0, bad.search(text).start() - 100):][:200])
assert "\\u202e" in text and "\\u009b" in text and "\\u2028" in text
listed = {r["res"]: r["holders"][0]["who"] for r in json.load(open("listed"))["resources"]}
assert listed[sys.argv[1]] == "\x7f\x80\x9b31m\x85\u202e", listed
assert json.load(open("acquired"))["res"] == sys.argv[1] + " 2"
CHECK
export INTERLOCK_URL="file://$work/locks"

it "what only looks at a store that does not exist says so, and does not make it"
token=$("$INTERLOCK" acquire elsewhere)
for command in 'who a' list watch top 'top --json' deadlocks 'serve --metrics 127.0.0.1:0' repair 'break -y a' "extend $token" "release $token"; do
  # shellcheck disable=SC2086
  expect 69 timeout 20 "$INTERLOCK" --url "file://$work/mistyped" $command
  contains "$err" "there is no store: the directory $work/mistyped does not exist; nothing has been locked there yet, or the path is mistyped"
  refute test -e mistyped
done
expect 69 env INTERLOCK_URL="file://$work/mistyped" "$INTERLOCK" list
contains "$err" "set by INTERLOCK_URL"

it "watch prints a line for each change when there is no terminal"
"$INTERLOCK" watch --interval 20ms w >changes &
watcher=$!
hold w --label watched
eventually grep -Eq '^[0-9:]{8} w held by .*\(watched\)$' changes
let_go
eventually grep -Eq '^[0-9:]{8} w no longer held by .*\(watched\)$' changes
same "$(wc -l <changes)" 2
kill -TERM "$watcher"
ends "$watcher" 143
refute grep -q $'\033' changes

it "watch goes on when the store stops to answer, and says so once"
mkdir -m 0700 redis
serve_redis() {
  redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work/redis" >/dev/null &
  redis=$!
  eventually redis-cli -s "$work/redis.sock" ping >/dev/null 2>&1
}
serve_redis
export INTERLOCK_URL="redis+unix://$work/redis.sock?timeout=300ms"
"$INTERLOCK" watch --interval 20ms w >changes 2>problems &
watcher=$!
expect 0 "$INTERLOCK" acquire w --label before
eventually grep -q 'held by.*(before)' changes
kill -KILL "$redis"
eventually gone "$redis"
eventually grep -q "the store does not answer, asking again: " problems
serve_redis
eventually grep -q "the store answers again" problems
expect 0 "$INTERLOCK" acquire w --label after
eventually grep -q 'held by.*(after)' changes
same "$(wc -l <problems)" 2
kill -STOP "$redis"
told_again() { (($(wc -l <problems) > 2)); }
eventually told_again
kill -TERM "$watcher"
ends "$watcher" 143
kill -KILL "$redis"
finish
