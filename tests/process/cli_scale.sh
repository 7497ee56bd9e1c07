#!/usr/bin/env bash
# interlock simulate scale: predictions, without a store.
source "$(dirname "$0")/cli_lib.bash"

scale() { "$INTERLOCK" simulate scale --duration 500ms "$@"; }
# point JSON N FIELD
point() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["points"][int(sys.argv[2])][sys.argv[3]])' "$@"; }

it "compares each kind of store"
expect 0 scale --profile all -p 16,64
for store in file redis redis-cluster redlock postgres postgres-lease etcd; do
  check grep -Eq "^$store +1 +16 " out
  check grep -Eq "^$store +own +64 " out
done
refute grep -q $'\033' out
contains "$out" "A cycle is an acquire and its release"
contains "$out" "SHORT FIRST: what is used to 90 % or more"

it "answers programs, and says the same for the same seed"
expect 0 scale --profile redis -p 100 -l 10 --hold 1ms --think 20ms --json
cp out first
same "$(point first 0 processes)" 100
same "$(point first 0 locks)" 10
expect 0 scale --profile redis -p 100 -l 10 --hold 1ms --think 20ms --json
check cmp -s out first
expect 0 scale --profile redis -p 100 -l 10 --hold 1ms --think 20ms --json --seed 2
refute cmp -s out first

it "knows that a slower server does less, and that a cluster does more"
rate() { scale "$@" -p 500 -l 0 --json >rate.json && point rate.json 0 cycles_per_second | cut -d. -f1; }
one=$(rate --profile redis)
check test "$(rate --profile redis --service-time 1ms)" -lt "$((one / 10))"
check test "$(rate --profile redis-cluster --servers 6)" -gt "$((one * 2))"

it "takes a million locks and ten thousand processes"
expect 0 scale --profile redis -p 10000 -l 1000000 --think 1s
contains "$out" "1.0M"

it "measures the store that is set, wherever that is; if none is, it has each kind of store"
expect 0 env -u INTERLOCK_URL INTERLOCK_CONFIG=/dev/null "$INTERLOCK" simulate scale --duration 500ms -p 16 -l 1
check grep -Eq "^etcd +1 +16 " out
expect 64 env -u INTERLOCK_URL INTERLOCK_CONFIG=/dev/null "$INTERLOCK" simulate scale --check
contains "$err" "give its --url"
touch occupied
INTERLOCK_URL="file://$work/occupied" expect 69 scale
contains "$out" "costs: measured at file://$work/occupied"
contains "$out" "This store was set by INTERLOCK_URL"
contains "$err" "this store was set by INTERLOCK_URL"
printf '{"url": "file://%s/occupied"}' "$work" >interlock.json
expect 69 env -u INTERLOCK_URL "$INTERLOCK" simulate scale --duration 500ms --check
contains "$err" "this store was set by $(pwd -P)/interlock.json:1"
rm interlock.json
INTERLOCK_URL=redis://127.0.0.1:1 expect 0 scale --profile redis -p 4 -l 1

it "draws"
expect 0 scale --profile redis,etcd -p 4,16,64 -l 1 --svg scale.svg
check python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("scale.svg")'
expect 74 scale --profile redis -p 4 -l 1 --svg missing/scale.svg

it "says what makes no sense"
expect 64 scale --profile oracle
contains "$err" 'there is no profile "oracle"'
expect 64 scale --check --profile redis
contains "$err" "give its --url, and leave --profile out"
expect 64 scale --profile redis --url "file://$work/locks"
contains "$err" "give one of them"
expect 64 scale -p 0
expect 64 scale --hold 5
for wrong in '--skew nan' '--skew inf' '--skew -1' '--skew 1x' '--skew 6' '--shared nan' '--shared 1.1' '--seed -1' '--ttl 0s' \
  '--hold 9000h' '--round-trip -1s' '--leases 1x' '--cores nan'; do
  # shellcheck disable=SC2086
  expect 64 scale --profile redis $wrong
  contains "$err" "interlock: ${wrong% *}: "
done
expect 64 scale --profile redis --skew nan
contains "$err" "--skew: 'nan' is not a number from 0 to 5"
expect 64 "$INTERLOCK" simulate scale --profile redis --duration 0s
expect 64 "$INTERLOCK" simulate
expect 64 scale --url memory:
contains "$err" "there is no model of memory:"
expect 64 scale --url file:///tmp --check --svg scale.svg
expect 69 scale --url redis://127.0.0.1:1

finish
