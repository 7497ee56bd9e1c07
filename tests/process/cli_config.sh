#!/usr/bin/env bash
# Settings: which store the command uses, and what it says about that. Rows 3.5 and 4.1.
source "$(dirname "$0")/cli_lib.bash"
unset INTERLOCK_URL INTERLOCK_CONFIG LOCKING_BACKEND REDIS_HOST REDIS_PORT REDIS_DB REDIS_PASSWORD
here=$(pwd -P)

# setting KEY [OPTIONS…]: "value|where" as interlock config --json has it.
setting() {
  local key=$1
  shift
  "$INTERLOCK" "$@" config --json | python3 -c 'import json,sys
s = {s["key"]: s for s in json.load(sys.stdin)["settings"]}[sys.argv[1]]
print(s["value"] + "|" + (s["where"] or s["origin"]))' "$key"
}
mkdir -m 0700 by-file by-other-file by-option by-variable
default_url=$(env -i "$INTERLOCK" config --json | grep -o 'file://[^"]*' | head -1)
uses() { "$INTERLOCK" list --json "$@" | python3 -c 'import json,sys; print(json.load(sys.stdin)["store"])'; }

it "says that nothing is set, and what is used then"
same "$(setting url)" "$default_url|default"
expect 0 "$INTERLOCK" config
check grep -Eq '^SETTING +VALUE +FROM$' out
check grep -Eq '^url +file:///\S+ +default$' out
check grep -Eq '^ttl +30s +default$' out
check grep -Eq '^maxWait +- +default$' out
refute grep -q $'\033' out

it "asks --url, --config, INTERLOCK_URL, the usual file, shared variables, then the default"
export REDIS_HOST=redis.internal REDIS_DB=3
same "$(setting url)" "redis://redis.internal/3|REDIS_HOST, REDIS_DB"
export LOCKING_BACKEND=file
same "$(setting url)" "$default_url|LOCKING_BACKEND"
printf '{\n  "url": "file://%s/by-file"\n}\n' "$work" >interlock.json
same "$(setting url)" "file://$work/by-file|$here/interlock.json:2"
contains "$(uses)" "$work/by-file"
printf '{"url": "file://%s/by-other-file"}' "$work" >other.json
same "$(INTERLOCK_CONFIG=other.json setting url)" "file://$work/by-other-file|$here/other.json:1"
same "$(INTERLOCK_CONFIG=missing.json setting url --config other.json)" "file://$work/by-other-file|$here/other.json:1"
contains "$(uses --config other.json)" "$work/by-other-file"
same "$(setting url --url "file://$work/by-option")" "file://$work/by-option|--url"
contains "$(uses --url "file://$work/by-option")" "$work/by-option"
export INTERLOCK_URL="file://$work/by-variable"
same "$(setting url)" "file://$work/by-variable|INTERLOCK_URL"
contains "$(uses)" "$work/by-variable"
same "$(INTERLOCK_CONFIG=other.json setting url)" "file://$work/by-variable|INTERLOCK_URL"
same "$(INTERLOCK_CONFIG=/dev/null setting url)" "file://$work/by-variable|INTERLOCK_URL"
same "$(setting url --config other.json)" "file://$work/by-other-file|$here/other.json:1"
same "$(setting url --url "file://$work/by-option")" "file://$work/by-option|--url"
inner='"$INTERLOCK" config --json | grep -o "\"where\":\"[^\"]*\"" | head -1'
expect 0 "$INTERLOCK" run --config other.json a -- "$INTERLOCK" config --json
contains "$out" "$work/by-other-file"
unset REDIS_HOST REDIS_DB LOCKING_BACKEND INTERLOCK_URL

it "a command of run finds the same store, wherever it goes"
inner='cd / && "$INTERLOCK" config --json | grep -o "\"where\":\"[^\"]*\"" | head -1'
expect 0 "$INTERLOCK" run a -- sh -c "$inner"
contains "$out" INTERLOCK_URL
expect 0 "$INTERLOCK" run a -- sh -c 'cd / && "$INTERLOCK" config --json'
contains "$out" "$work/by-file"
expect 0 "$INTERLOCK" run --url "file://$work/by-option" a -- sh -c "$inner"
contains "$out" INTERLOCK_URL
expect 0 "$INTERLOCK" run --config other.json a -- sh -c 'cd / && "$INTERLOCK" config --json'
contains "$out" "$work/by-other-file"
expect 0 "$INTERLOCK" run --config <(cat other.json) a -- "$INTERLOCK" config --json
contains "$out" "$work/by-other-file"
mkdir elsewhere && printf '{"url": "file://%s/by-stranger"}' "$work" >elsewhere/interlock.json
expect 0 env -C / INTERLOCK_URL= "$INTERLOCK" run a -- sh -c "cd $work/elsewhere && \"\$INTERLOCK\" config --json"
contains "$out" "$default_url"

it "takes TTL, wait and label from the file, and the command line goes first"
printf '{"url": "file://%s/locks", "ttl": "00:01:00", "maxWait": "50ms", "label": "from the file"}' "$work" >interlock.json
hold a
expect 0 "$INTERLOCK" who a
contains "$out" "(from the file)"
remaining() { "$INTERLOCK" who --json "$@" | python3 -c 'import json,sys
print(json.load(sys.stdin)["resources"][0]["holders"][0]["remaining_ms"] > 30000)'; }
same "$(remaining a)" True
expect 75 "$INTERLOCK" run a -- true
expect 75 "$INTERLOCK" acquire a
let_go
hold b --label mine --ttl 10s
expect 0 "$INTERLOCK" who b
contains "$out" "(mine)"
same "$(remaining b)" False
let_go

it "tells more if the file says so"
printf '{"url": "file://%s/locks", "logLevel": "debug"}' "$work" >interlock.json
expect 0 "$INTERLOCK" run a -- true
contains "$err" granted
printf '{"url": "file://%s/locks", "logLevel": "info"}' "$work" >interlock.json
expect 0 "$INTERLOCK" run a -- true
refute grep -q granted err
expect 0 "$INTERLOCK" -v run a -- true
contains "$err" granted

it "refuses a file that is not meant for it, with the line, a suggestion and the way out"
printf '{\n  "url": "file://%s/locks",\n  "tll": "10s"\n}\n' "$work" >interlock.json
expect 64 "$INTERLOCK" run a -- touch ran
refute test -e ran
same "$(wc -l <<<"$err")" 1
contains "$err" "$here/interlock.json:3"
contains "$err" 'did you mean "ttl"?'
contains "$err" "INTERLOCK_CONFIG=/dev/null"
expect 0 env INTERLOCK_CONFIG=/dev/null INTERLOCK_URL="file://$work/locks" "$INTERLOCK" run a -- true
expect 64 "$INTERLOCK" --config missing.json list
contains "$err" missing.json
rm interlock.json

it "locks on this machine only if distributed locking is switched off"
printf '{"url": "redis://127.0.0.1:1", "enableDistributedLocking": false}' >interlock.json
same "$(setting url)" "$default_url|default"
expect 0 "$INTERLOCK" list
same "$(REDIS_HOST=h setting url)" "$default_url|default"

it "uses a store that is named before the file that switches distributed locking off"
same "$(setting url --url "file://$work/by-option")" "file://$work/by-option|--url"
same "$(setting enableDistributedLocking --url "file://$work/by-option")" "true|default"
contains "$(uses --url "file://$work/by-option")" "$work/by-option"
export INTERLOCK_URL="file://$work/by-variable"
same "$(setting url)" "file://$work/by-variable|INTERLOCK_URL"
same "$(setting enableDistributedLocking)" "true|default"
contains "$(uses)" "$work/by-variable"
same "$(INTERLOCK_CONFIG=interlock.json setting url)" "file://$work/by-variable|INTERLOCK_URL"
contains "$(uses --url "file://$work/by-option" --config interlock.json)" "$work/by-option"
expect 0 "$INTERLOCK" run --url "file://$work/by-option" a -- "$INTERLOCK" who a
# --config goes before INTERLOCK_URL, for the command of run as well.
same "$(setting url --config interlock.json)" "$default_url|default"
expect 0 "$INTERLOCK" run --config interlock.json "cli-config-$$" -- "$INTERLOCK" who "cli-config-$$"
unset INTERLOCK_URL
rm interlock.json

it "shows no password"
export INTERLOCK_URL='redis://me:geheim@127.0.0.1:1?timeout=200ms'
for command in config 'config --json' 'config --check' 'config --check --json'; do
  # shellcheck disable=SC2086
  "$INTERLOCK" $command >out 2>err
  refute grep -q geheim out
  refute grep -q geheim err
  contains "$(<out)" '***'
done
unset INTERLOCK_URL
REDIS_HOST=h REDIS_PASSWORD=geheim expect 0 "$INTERLOCK" config --json
refute grep -q geheim out

it "shows no password that got to where none belongs"
for url in 'redis://:s3c/cr3t@h:1' 'redis://:x?cr3t@h' 'postgres://u:s3c/cr3t@h' 'redis://:s3cret' 'redis://h?auth=s3cret'; do
  for command in config list schema repair 'who x'; do
    # shellcheck disable=SC2086
    INTERLOCK_URL=$url "$INTERLOCK" $command >out 2>&1
    refute grep -Eq 's3c|cr3t' out
  done
done
printf '{"url": ":s3cret"}' >secret.json
expect 64 "$INTERLOCK" --config secret.json config
refute grep -q s3cret err
for words in '-u redis://:s3cret@h list' 'redis://:s3cret@h' ':s3cret@h' '--ur=redis://:s3cret@h list' \
  'config redis://:s3cret@h' 'serve --metrics redis://:s3cret@h' '--config redis://:s3cret@h list'; do
  # shellcheck disable=SC2086
  expect 64 "$INTERLOCK" $words
  refute grep -q s3cret err
done

it "--check asks the store, and says with 69 that it does not answer"
expect 0 "$INTERLOCK" config --check --url "file://$work/locks"
contains "$out" "answers"
expect 0 "$INTERLOCK" config --check --json --url "file://$work/locks"
contains "$out" '"reachable":true'
expect 69 "$INTERLOCK" config --check --json --url 'redis://127.0.0.1:1?timeout=200ms'
contains "$out" '"reachable":false'
contains "$err" "127.0.0.1:1"
expect 64 "$INTERLOCK" config nonsense

it "--check makes no directory, and says whether the first lock can"
expect 0 "$INTERLOCK" config --check --url "file://$work/mistyped"
contains "$out" "the store file://$work/mistyped does not exist yet; the first lock makes its directory"
refute test -e mistyped
expect 0 "$INTERLOCK" config --check --json --url "file://$work/mistyped"
contains "$out" '"reachable":true'
refute test -e mistyped
expect 69 "$INTERLOCK" config --check --url "file://$work/mistyped/locks"
contains "$err" "the directory $work/mistyped does not exist; make it: mkdir -p $work/mistyped"
mkdir -m 0777 anybodys && chmod 0777 anybodys
expect 69 "$INTERLOCK" config --check --url "file://$work/anybodys/locks"
contains "$err" "$work/anybodys"
touch occupied
expect 69 "$INTERLOCK" config --check --url "file://$work/occupied/locks"
refute test -e anybodys/locks
expect 64 "$INTERLOCK" config --check --url "file://$work/mistyped?netwrk=allow"
contains "$err" netwrk

it "--check says where locks can be seen and not be taken"
mkdir -m 0700 sealed
if unshare -rm true 2>/dev/null; then
  sealed() { unshare -rm sh -c 'mount --bind sealed sealed && mount -o remount,bind,ro sealed && exec "$@"' sh "$@"; }
  expect 0 sealed "$INTERLOCK" list --url "file://$work/sealed"
  expect 69 sealed "$INTERLOCK" config --check --url "file://$work/sealed"
  contains "$err" "can't write to the directory $work/sealed: Read-only file system, so nothing can be locked there; name "
  same "$(wc -l <<<"$err")" 1
  expect 69 sealed "$INTERLOCK" config --check --json --url "file://$work/sealed"
  contains "$out" '"reachable":false'
  expect 69 sealed "$INTERLOCK" config --check --url "file://$work/sealed/below"
  contains "$err" "can't make the directory $work/sealed/below: Read-only file system; name a directory where you may write"
fi

redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work" >/dev/null &
redis=$!
eventually redis-cli -s "$work/redis.sock" ping >/dev/null 2>&1
redis-cli -s "$work/redis.sock" ACL SETUSER looker on '>hush' '~*' '&*' +@all -set >/dev/null
expect 0 "$INTERLOCK" list --url "redis+unix://looker:hush@$work/redis.sock"
expect 69 "$INTERLOCK" config --check --url "redis+unix://looker:hush@$work/redis.sock"
contains "$err" "lacks a right for this user, and docs/redis.md has all it needs: +SET"
expect 69 "$INTERLOCK" config --check --json --url "redis+unix://looker:hush@$work/redis.sock"
contains "$out" '"reachable":false'
expect 0 "$INTERLOCK" config --check --url "redis+unix://$work/redis.sock"
contains "$out" "redis.sock answers"

it "warns of what the server says when it is reached, once, unless the level is error"
redis-cli -s "$work/redis.sock" CONFIG SET maxmemory 100mb maxmemory-policy allkeys-lru >/dev/null
risky="redis+unix://$work/redis.sock"
evicts="interlock: warning: when its memory is full, the server may evict locks (maxmemory-policy allkeys-lru); noeviction never does"
for command in 'run a -- true' 'config --check' list; do
  # shellcheck disable=SC2086
  expect 0 "$INTERLOCK" --url "$risky" $command
  same "$err" "$evicts"
done
expect 0 "$INTERLOCK" run --log-level warning --url "$risky" a -- true
same "$(grep -c 'may evict locks' err)" 1
for level in warning error; do
  printf '{"url": "%s", "logLevel": "%s"}' "$risky" $level >level.json
  expect 0 "$INTERLOCK" --config level.json run a -- true
  same "$err" "$([[ $level == error ]] || echo "$evicts")"
done
expect 0 "$INTERLOCK" run --log-level error --url "$risky" a -- true
same "$err" ""
redis-cli -s "$work/redis.sock" CONFIG SET maxmemory 0 >/dev/null

it "says that too few replicas confirm a lock, and not that the store does not answer"
few="the server answers, but 0 of 1 replicas confirmed the lock in time, so it was given back; see that the replicas run"
alone="redis+unix://$work/redis.sock?min-replicas=1"
expect 69 "$INTERLOCK" config --check --url "$alone"
contains "$err" "$few"
contains "$err" "lower min-replicas in the store's URL"
contains "$err" ": store unavailable"
expect 69 "$INTERLOCK" run -w 2s a --url "$alone" -- touch ran
contains "$err" "a: the store can't grant it now, trying again: $few"
refute grep -Eq 'does not answer|unreachable' err
refute test -e ran
same "$(redis-cli -s "$work/redis.sock" --scan | grep -v fence)" ""
kill -TERM "$redis"
eventually gone "$redis"

it "names a directory that can't be made, why, and what would do"
expect 69 "$INTERLOCK" run --url file:///proc/x a -- true
contains "$err" "can't make the directory /proc/x: No such file or directory; name a directory where you may write"
expect 69 "$INTERLOCK" run --url "file://$work/missing/x" a -- true
contains "$err" "the directory $work/missing does not exist; make it: mkdir -p $work/missing"

it "names a store that has no schema, without its password"
expect 64 "$INTERLOCK" schema --url "file://$work/locks"
contains "$err" "file://$work/locks has no schema, only PostgreSQL has one; give --url postgres://"
expect 64 "$INTERLOCK" schema --url redis://:s3cret@h
refute grep -q s3cret err

it "suggests what a URL without a scheme was meant to be, and never a store that it refuses"
for pair in '/tmp/x=file:///tmp/x' 'localhost=redis://localhost' '127.0.0.1:23017=redis://127.0.0.1:23017' 'host:6379=redis://host:6379' \
  'db.example:6379=redis://db.example:6379'; do
  expect 64 "$INTERLOCK" list --url "${pair%%=*}"
  contains "$err" "did you mean ${pair#*=}?"
  refute grep -q memory: err
  expect 64 env INTERLOCK_URL="${pair%%=*}" "$INTERLOCK" list
  contains "$err" "INTERLOCK_URL: "
  contains "$err" "did you mean ${pair#*=}?"
done
for url in ./locks '~/locks' locks s3cret 'me:s3cret@h' foo://x; do
  expect 64 "$INTERLOCK" list --url "$url"
  refute grep -Eq 'memory:|s3cret' err
done
expect 64 "$INTERLOCK" list --url rdis://h
contains "$err" "this program has no store for rdis:; it has "
contains "$err" "did you mean redis:?"
printf '{\n"url": "/tmp/x"}' >wrong.json
expect 64 "$INTERLOCK" --config wrong.json list
contains "$err" "wrong.json:2: url: the store's URL has to begin with a scheme; did you mean file:///tmp/x?"
for url in 'foo://x' 'file://h/x' 'redis://h?timout=3s'; do
  for command in 'run a -- true' list 'config --check'; do
    # shellcheck disable=SC2086
    expect 64 env INTERLOCK_URL="$url" "$INTERLOCK" $command
    contains "$err" "interlock: INTERLOCK_URL: "
    same "$(wc -l <<<"$err")" 1
  done
done

it "config --json has the documented keys"
expect 0 "$INTERLOCK" config --json
check python3 - "$out" <<'CHECK'
import json, sys
d = json.loads(sys.argv[1])
assert list(d) == ["file", "settings"] and d["file"] is None, d
assert all(list(s) == ["key", "value", "origin", "where"] for s in d["settings"]), d
assert [s["key"] for s in d["settings"]] == ["url", "enableDistributedLocking", "onUnavailable", "ttl", "maxWait",
    "label", "deadlockDetection", "logLevel"], d
CHECK

it "reads no file that has no end, and none that is not named"
mkfifo interlock.json
expect 64 "$INTERLOCK" list
contains "$err" "not a regular file"
rm interlock.json
expect 64 "$INTERLOCK" --config /dev/zero list
expect 64 "$INTERLOCK" --config "" list
contains "$err" "/dev/null"
expect 0 "$INTERLOCK" --config <(printf '{"url": "file://%s/locks"}' "$work") list

it "says where the store was set that can't be reached"
expect 69 env INTERLOCK_URL='redis://127.0.0.1:1?timeout=200ms' "$INTERLOCK" list
contains "$err" "this store was set by INTERLOCK_URL"
expect 69 env INTERLOCK_URL='redis://127.0.0.1:1?timeout=200ms' "$INTERLOCK" run -n a -- true
contains "$err" "this store was set by INTERLOCK_URL"
expect 69 "$INTERLOCK" list --url 'redis://127.0.0.1:1?timeout=200ms'
refute grep -q "was set by" err

it "goes on without traces if they can't be sent, and says so"
for value in localhost:4317 grpc://h:4317 foo http://; do
  expect 0 env OTEL_EXPORTER_OTLP_ENDPOINT="$value" "$INTERLOCK" run --url "file://$work/locks" a -- true
  contains "$err" "OTEL_EXPORTER_OTLP_ENDPOINT: '$value'"
  same "$(wc -l <<<"$err")" 1
done
expect 0 env OTEL_EXPORTER_OTLP_ENDPOINT='grpc://me:s3cret@h' "$INTERLOCK" run --url "file://$work/locks" a -- true
refute grep -q s3cret err
expect 0 env OTEL_SDK_DISABLED=true OTEL_EXPORTER_OTLP_ENDPOINT=foo "$INTERLOCK" run --url "file://$work/locks" a -- true
same "$err" ""
expect 0 env OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 "$INTERLOCK" run -v --url "file://$work/locks" a -- true
contains "$err" "traces can't be sent: http://127.0.0.1:1/v1/traces did not answer"
finish
