#!/usr/bin/env bash
# bench and the simulations, at small sizes, over the file store and in memory; and over servers, where
# they are installed.
source "$(dirname "$0")/cli_lib.bash"

# field NAME: of the JSON that was printed.
field() { python3 -c 'import json,sys; print(json.load(open("out"))[sys.argv[1]])' "$1"; }
# It has taken locks, and goes on.
takes() { "$INTERLOCK" list 2>/dev/null | grep -q "^interlock-"; }
working() { eventually takes && eventually takes; }
# Damages the store until this process has ended; each time between two of its steps, or that would write
# over it.
spoil() {
  local end=$((SECONDS + 20)) file
  while alive "$1" && ((SECONDS < end)); do
    for file in locks/*.json; do
      echo damaged >damaged && flock "${file%.json}.lock" mv damaged "$file"
    done
  done
}
small=(--processes 2 --threads 2)

# row 4.8
it "runs each program with threads in memory"
for program in time speed stress escalation; do
  expect 0 "$INTERLOCK" --url memory: simulate "$program" --duration 300ms --seed 7 --svg "$program.svg"
  contains "$out" "seed 7"
  contains "$out" "grants"
  refute grep -q "set by" out
  contains "$out" "No two were where only one may be."
  check python3 -c 'import sys, xml.dom.minidom as x; assert x.parse(sys.argv[1]).getElementsByTagName("rect")' "$program.svg"
done
contains "$out" "(Jain's index, 1 is best; of those who lock rows)"
expect 64 "$INTERLOCK" --url memory: simulate speed --processes 2
contains "$err" "--processes 1"

it "runs each program with processes over the file store, and leaves nothing behind"
for program in time speed stress escalation; do
  expect 0 "$INTERLOCK" simulate "$program" "${small[@]}" --duration 1s --json --seed 11
  same "$err" ""
  same "$(field seed)" 11
  same "$(field violations)" "[]"
  check test "$(field grants)" -gt 0
  same "$("$INTERLOCK" list)" ""
done

it "says where the store was set"
expect 0 "$INTERLOCK" simulate time --duration 500ms
contains "$out" "This store was set by INTERLOCK_URL"
printf '{"url": "file://%s/locks"}' "$work" >interlock.json
expect 0 env -u INTERLOCK_URL "$INTERLOCK" simulate time --duration 500ms
contains "$out" "This store was set by $(pwd -P)/interlock.json:1"
expect 0 env -u INTERLOCK_URL "$INTERLOCK" bench --duration 60ms --threads 2
contains "$out" "This store was set by $(pwd -P)/interlock.json:1"
rm interlock.json

# row 4.8
it "kills and stops processes under stress, and nothing overlaps"
expect 0 "$INTERLOCK" simulate stress --duration 4s --processes 3 --threads 2 --ttl 500ms --json --seed 7 --svg stress.svg
check test "$(field killed)" -gt 0
check test "$(field partial_releases)" -gt 0
check test "$(field cancelled)" -gt 0
check grep -q 'class="killed"' stress.svg
check grep -q '>worker 2.1<' stress.svg

it "draws the whole run, also one with more events than can be seen"
expect 0 "$INTERLOCK" --url memory: simulate speed --duration 3s --hold 0s --svg speed.svg
check grep -q '>A column is ' speed.svg
for picture in stress speed; do
  check python3 - "$picture.svg" <<'CHECK'
import sys, xml.dom.minidom as x
bars = [b for b in x.parse(sys.argv[1]).getElementsByTagName("rect") if b.hasAttribute("x")]
ends = [float(b.getAttribute("x")) + float(b.getAttribute("width")) for b in bars]
assert 84 + 1100 * 0.9 < max(ends) < 84 + 1101, max(ends)
assert len(bars) < 15000, len(bars)
CHECK
done

it "fails with the command to repeat it if two are where only one may be"
expect 1 "$INTERLOCK" simulate stress "${small[@]}" --duration 10s --no-lock --seed 5
contains "$err" "FAILED: worker "
check grep -Eq "FAILED: worker [01]\.[01] .*worker [01]\.[01] " err
contains "$err" "to repeat it: interlock simulate stress --url file://$work/locks"
contains "$err" "--no-lock --seed 5"
expect 1 "$INTERLOCK" simulate escalation "${small[@]}" --duration 10s --no-lock --json
refute test "$(field violations)" = "[]"
expect 1 "$INTERLOCK" simulate speed --duration 10s --no-lock
expect 64 "$INTERLOCK" simulate speed --duration 200ms --processes 1 --threads 1 --no-lock

it "ends at Ctrl-C with what it has so far, and lets go of everything"
env --default-signal=INT "$INTERLOCK" simulate speed --processes 2 --duration 1h >early 2>&1 &
runs=$!
eventually grep -qs Names early
kill -INT "$runs"
ends "$runs" 130
contains "$(<early)" "Checks:"
contains "$(<early)" "Partial: "
same "$("$INTERLOCK" list)" ""

it "does not hold on beyond its end"
expect 0 "$INTERLOCK" simulate speed --processes 1 --threads 2 --duration 500ms --hold 1h
expect 0 "$INTERLOCK" simulate speed --processes 2 --threads 1 --duration 500ms --hold 1h
same "$("$INTERLOCK" list)" ""

it "ends though one of its processes was stopped"
"$INTERLOCK" simulate speed --processes 2 --duration 6s >early 2>&1 &
runs=$!
eventually takes
eventually pgrep -P "$runs" >children
kill -STOP "$(head -n 1 children)"
ends "$runs" 0

it "tells what it found before a picture that can't be written"
expect 1 "$INTERLOCK" simulate speed --duration 10s --no-lock --svg /dev/full
contains "$err" "FAILED: "
contains "$err" "the picture can't be written to /dev/full"
expect 74 "$INTERLOCK" simulate time --duration 500ms --svg /dev/full
contains "$out" "grants"
echo kept >kept.svg
expect 69 "$INTERLOCK" simulate time --url redis://127.0.0.1:1 --svg kept.svg
same "$(<kept.svg)" kept

it "refuses what makes no sense"
expect 64 "$INTERLOCK" simulate time --no-lock
expect 64 "$INTERLOCK" simulate time --url ""
contains "$err" "is a variable not set?"
expect 64 "$INTERLOCK" simulate
expect 64 "$INTERLOCK" simulate stres
contains "$err" '"stress"'
expect 64 "$INTERLOCK" simulate stress --threads 0
contains "$err" "interlock simulate stress --help"
expect 64 "$INTERLOCK" simulate stress --duration 10
expect 64 "$INTERLOCK" simulate stress --duration 0s
expect 64 "$INTERLOCK" simulate escalation --resources 1
for wrong in '--seed -1' '--seed 1x' '--seed 1.5' '--seed 99999999999999999999' '--ttl 0s' '--ttl 9000h' '--hold -1s' \
  '--hold 9000h' '--duration inf' '--duration 3ns' '--threads nan' '--resources 2x'; do
  # shellcheck disable=SC2086
  expect 64 "$INTERLOCK" --url memory: simulate time $wrong
  contains "$err" "interlock: ${wrong% *}: "
  contains "$err" "(see: interlock simulate time --help)"
done
expect 64 "$INTERLOCK" --url memory: simulate time --seed -1
contains "$err" "--seed: '-1' is not a whole number from 0 to 18446744073709551615"
expect 0 "$INTERLOCK" --url memory: simulate time --duration 300ms --seed 18446744073709551615
contains "$out" "seed 18446744073709551615"
expect 74 "$INTERLOCK" simulate time --duration 500ms --svg no/such/directory.svg
expect 69 "$INTERLOCK" simulate time --url redis://127.0.0.1:1
for program in time speed stress escalation; do
  expect 0 "$INTERLOCK" help simulate "$program"
  contains "$out" "Usage: interlock simulate $program"
  refute grep -q member out
done

it "measures a store"
expect 0 "$INTERLOCK" bench --duration 900ms --threads 4
contains "$out" "Throughput: "
contains "$out" "P99"
contains "$out" "interlock-bench:"
same "$err" ""
same "$("$INTERLOCK" list)" ""
expect 0 "$INTERLOCK" --url memory: bench --duration 600ms --json
check python3 -c 'import json
it = json.load(open("out"))
assert not it["partial"]
assert it["cycle"]["count"] > 0 and it["handoff"]["count"] > 0 and it["throughput"]["cycles_per_second"] > 0, it
assert it["cycle"]["p50_us"] <= it["cycle"]["p99_us"] <= it["cycle"]["max_us"], it'
rm -f early
env --default-signal=INT "$INTERLOCK" bench --duration 1h >early 2>&1 &
runs=$!
eventually grep -qs Names early
kill -INT "$runs"
ends "$runs" 130
contains "$(<early)" "acquire"
contains "$(<early)" "Partial: "
refute grep -q "Throughput: " early

it "leaves out what was not measured"
env --default-signal=INT "$INTERLOCK" bench --duration 1h --json >early.json &
runs=$!
working
kill -INT "$runs"
ends "$runs" 130
check python3 -c 'import json
it = json.load(open("early.json"))
assert it["partial"] and it["throughput"] is None and it["handoff"] is None, it'

it "tells what it has so far if the store breaks, and then the error"
rm -rf locks
"$INTERLOCK" bench --duration 1h >early 2>early.err &
runs=$!
working
spoil "$runs"
ends "$runs" 69
contains "$(<early)" "acquire"
contains "$(<early)" "Partial: "
contains "$(<early.err)" "interlock repair"
for format in "" --json; do
  rm -rf locks
  # shellcheck disable=SC2086
  "$INTERLOCK" simulate speed --processes 2 --duration 1h $format >early 2>early.err &
  runs=$!
  working
  spoil "$runs"
  ends "$runs" 69
  contains "$(<early.err)" "interlock repair"
done
check python3 -c 'import json
it = json.load(open("early"))
assert it["partial"] and it["grants"] > 0 and it["waits"]["exclusive"]["p50_us"] > 0, it'
rm -rf locks

it "refuses what a bench can't do"
expect 64 "$INTERLOCK" bench --duration 5
expect 64 "$INTERLOCK" bench --duration 0s
contains "$err" "--duration: 0s is out of range: 1ms to a year"
expect 64 "$INTERLOCK" bench --threads 0
expect 69 "$INTERLOCK" bench --url redis://127.0.0.1:1 --duration 300ms
finish
