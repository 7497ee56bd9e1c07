#!/usr/bin/env bash
# What a wait says where nobody watches it.
source "$(dirname "$0")/cli_lib.bash"

hold taken --label "the nightly run"
"$INTERLOCK" run taken -- true 2>late & waits=$!
"$INTERLOCK" run -q taken -- true 2>quiet & waits_quietly=$!
eventually waiting taken 2

it "says how long it waited when it gives up"
expect 75 "$INTERLOCK" run -w 300ms taken -- true
check grep -Eq "^interlock: taken: gave up after 300ms, held by \S+ \(the nightly run\) for " err
expect 75 "$INTERLOCK" acquire -w 1s taken --also free
check grep -Eq "^interlock: taken and 1 more: gave up after 1s, taken is held by \S+ \(the nightly run\) for " err
printf '{"maxWait": "200ms"}' >limit.json
expect 75 env INTERLOCK_CONFIG=limit.json "$INTERLOCK" run taken -- true
contains "$err" "taken: gave up after 200ms, held by"
expect 75 "$INTERLOCK" run -n taken -- true
check grep -Eq "^interlock: taken: held by" err

it "says at once that it waits for its own lock"
for name in own own/below; do
  expect 75 "$INTERLOCK" run own -- "$INTERLOCK" run -w 2s $name -- true
  contains "$err" "interlock: $name: this command already runs under the lock 'own', so it waits for itself"
done
expect 75 "$INTERLOCK" run own -- "$INTERLOCK" run -q -w 500ms own -- true
same "$err" ""
# A lock of the same name in another store is another one.
mkdir -m 0700 other
INTERLOCK_URL="file://$work/other" "$INTERLOCK" run own -- sleep 300 & elsewhere=$!
held_elsewhere() { "$INTERLOCK" who --url "file://$work/other" own >/dev/null; }
eventually held_elsewhere
expect 75 "$INTERLOCK" run own -- "$INTERLOCK" run -w 1s --url "file://$work/other" own -- true
refute grep -q "waits for itself" err
kill "$elsewhere"
eventually gone "$elsewhere"

it "says once after half a minute who is in the way"
end=$((SECONDS + 60))
until grep -q still late || ((SECONDS >= end)); do sleep 0.1; done
check grep -Eq "^interlock: still waiting for 'taken', held by \S+ \(the nightly run\) for [0-9a-z]+(, 1 ahead of you)?$" late
let_go
ends "$waits" 0
ends "$waits_quietly" 0
same "$(wc -l <late)" 1
same "$(<quiet)" ""
finish
