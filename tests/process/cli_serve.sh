#!/usr/bin/env bash
# interlock serve: a store's state for Prometheus, and whoever else may come along.
source "$(dirname "$0")/cli_lib.bash"

# start OPTIONS…: its address is $url, its process $server.
start() {
  : >serving
  "$INTERLOCK" serve --metrics 0 "$@" 2>serving &
  server=$!
  eventually grep -q 'serving http' serving
  url=$(sed -n 's|.*serving \(http://[^/]*\)/metrics.*|\1|p' serving)
}
stop() {
  kill -TERM "$server"
  ends "$server" 0
}
fetch() { python3 - "$url$1" "${2:-GET}" <<'FETCH'
import sys, urllib.error, urllib.request
try:
    with urllib.request.urlopen(urllib.request.Request(sys.argv[1], method=sys.argv[2]), timeout=60) as r:
        status, headers, body = r.status, r.headers, r.read().decode()
except urllib.error.HTTPError as error:
    status, headers, body = error.code, error.headers, error.read().decode()
print(status, headers["Content-Type"])
print(body, end="")
FETCH
}
# A page is at most a second old.
shows() { fetch /metrics | grep -Eq "$1"; }

it "shows the store's state, without names, and nothing that can only be 0"
start
contains "$url" "http://127.0.0.1:"
page=$(fetch /metrics)
contains "$page" "200 text/plain; version=0.0.4; charset=utf-8"
contains "$page" "interlock_store_up{store=\"file\",node=\"$INTERLOCK_URL\"} 1"
contains "$page" "interlock_store_locks{store=\"file\",node=\"$INTERLOCK_URL\"} 0"
contains "$page" "interlock_reconnects_total{store=\"file\",node=\"$INTERLOCK_URL\"} 0"
refute grep -Eq 'interlock_(lost_total|held|waiting|wait_seconds|acquisitions)' <<<"$page"
hold secret-name
"$INTERLOCK" run secret-name -- true &
eventually waiting secret-name 1
eventually shows '^interlock_store_waiters\{store="file",node="[^"]*"\} 1$'
check shows '^interlock_store_locks\{store="file",node="[^"]*"\} 1$'
check shows '^interlock_store_holders\{store="file",node="[^"]*"\} 1$'
eventually shows '^interlock_store_oldest_hold_seconds\{store="file",node="[^"]*"\} [0-9]*\.?[0-9]*[1-9]'
check shows '^interlock_store_longest_wait_seconds\{store="file",node="[^"]*"\} [0-9.]+'
refute shows secret-name

it "Prometheus' own parser has nothing to say"
fetch /metrics | tail -n +2 >page
expect 0 promtool check metrics <page
check promtool check metrics <page

it "is well while the store is"
same "$(fetch /healthz)" $'200 text/plain; charset=utf-8\nok'

it "knows two pages and two methods"
contains "$(fetch /)" 404
contains "$(fetch /metrics POST)" 405
same "$(fetch /metrics HEAD | wc -l)" 1
contains "$(fetch '/metrics?x=y')" 200

it "nonsense, slow ones and those who hang up do no harm to others"
check python3 - "$url" <<'TEST'
import socket, sys, time, urllib.request
host, port = sys.argv[1].removeprefix("http://").split(":")
def connect():
    s = socket.create_connection((host, int(port)), timeout=60)
    return s
def ask(data):
    s = connect()
    s.sendall(data)
    answer = b""
    while True:
        try: more = s.recv(4096)
        except ConnectionResetError: break
        if not more: break
        answer += more
    return answer.split(b"\r\n")[0]
assert ask(b"GET /metrics HTTP/1.0\n\n").endswith(b"200 OK")
for data in b"nonsense\r\n\r\n", b"\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics\r\n\r\n", \
            b"GET /metrics HTTP/2.0\r\n\r\n", b"GET https://x/ HTTP/1.1\r\n\r\n", b"\0\xff" * 100 + b"\r\n\r\n":
    assert ask(data).endswith(b"400 Bad Request"), (data, ask(data))
assert ask(b"GET http://host:1/metrics HTTP/1.1\r\n\r\n").endswith(b"200 OK")
assert ask(b"GET http://host HTTP/1.1\r\n\r\n").endswith(b"404 Not Found")
assert b" 431 " in ask(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 20000)
slow = [connect() for _ in range(80)]  # more than it has room for
for s in slow[:40]: s.sendall(b"GET /met")
for s in slow[:10]: s.close()
# Room is made for us: the oldest of those who say nothing has to go.
with urllib.request.urlopen(sys.argv[1] + "/metrics", timeout=60) as r: assert r.status == 200
end = time.monotonic() + 60
for s in slow[10:]:
    s.settimeout(max(0.1, end - time.monotonic()))
    try: assert s.recv(100) == b"", "nobody answers half a request"
    except ConnectionResetError: pass
TEST
contains "$(fetch /healthz)" 200

it "readers that do not take their answers do not fill its memory"
export INTERLOCK_URL="file://$work/large"
# In small claims, as each name may take a descriptor.
for claim in {1..75}; do
  words=()
  for i in {1..40}; do words+=(--also "$claim-$i$(printf '%0490d' 0)"); done
  expect 0 "$INTERLOCK" acquire --ttl 1h "claim $claim" "${words[@]}"
done
plain=$url
: >serving-names
"$INTERLOCK" serve --metrics 0 --names 2>serving-names &
with_names=$!
eventually grep -q 'serving http' serving-names
check python3 - "$(sed -n 's|.*serving \(http://[^/]*\)/metrics.*|\1|p' serving-names)" "$with_names" "$(ldd "$INTERLOCK" | grep -o '[a-z]*san.so')" <<'TEST'
import socket, sys, urllib.request
host, port = sys.argv[1].removeprefix("http://").split(":")
def peak():
    for line in open(f"/proc/{sys.argv[2]}/status"):
        if line.startswith("VmHWM"): return int(line.split()[1]) // 1024
def fetch(path):
    with urllib.request.urlopen(sys.argv[1] + path, timeout=60) as r: return len(r.read())
page = fetch("/metrics")
assert page > 5_000_000, page
before = peak()
slow = []
for _ in range(40):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect((host, int(port)))
    s.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
    slow.append(s)
fetch("/healthz")
assert peak() - before < 60 or "san.so" in sys.argv[3], (before, peak(), page)
for s in slow: s.close()
assert fetch("/metrics") > 5_000_000
TEST
kill -TERM "$with_names"
ends "$with_names" 0
url=$plain
export INTERLOCK_URL="file://$work/locks"

it "ends when it is told to, and not before"
stop
let_go

it "shows names if it is told to, also odd ones"
expect 0 "$INTERLOCK" acquire --ttl 1m 'say "hi" \o/'
start --names
eventually shows '^interlock_lock_holders\{store="file",node="[^"]*",lock="say \\"hi\\" \\\\o/"\} 1$'
fetch /metrics | tail -n +2 >page
check promtool check metrics <page
stop

it "outlives a store that goes away, and says so meanwhile"
redis() {
  redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work" >/dev/null &
  redis=$!
  eventually redis-cli -s "$work/redis.sock" ping >/dev/null 2>&1
}
redis
start --url "redis+unix://$work/redis.sock"
eventually shows '^interlock_store_up\{store="redis",node="[^"]*"\} 1$'
kill -KILL "$redis"
ends "$redis" 137
ill() { [[ $(fetch /healthz) == 503* ]]; }
eventually ill
check shows '^interlock_store_up\{store="redis",node="[^"]*"\} 0$'
check shows '^interlock_disconnects_total\{store="redis",node="[^"]*"\} [1-9]'
redis
well() { [[ $(fetch /healthz) == 200* ]]; }
eventually well
check shows '^interlock_store_up\{store="redis",node="[^"]*"\} 1$'
check shows '^interlock_reconnects_total\{store="redis",node="[^"]*"\} [1-9]'
same "$(grep -c 'answers again' serving)" 1
stop
kill -KILL "$redis"

it "ends at once though the store hangs"
redis
start --url "redis+unix://$work/redis.sock?timeout=60s"
eventually shows '^interlock_store_up\{store="redis",node="[^"]*"\} 1$'
kill -STOP "$redis"
hangs() { ! timeout 3 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1"; printf "GET /healthz HTTP/1.0\n\n" >&3; read -r _ <&3' _ "${url##*:}"; }
eventually hangs
stop
kill -KILL "$redis"

it "says that another one listens there"
start
expect 71 "$INTERLOCK" serve --metrics "${url#http://}"
contains "$err" "${url#http://}: Address already in use"
stop

it "waits for descriptors without running hot"
: >serving
(ulimit -n 24 && exec "$INTERLOCK" serve --metrics 0 2>serving) &
server=$!
eventually grep -q 'serving http' serving
url=$(sed -n 's|.*serving \(http://[^/]*\)/metrics.*|\1|p' serving)
check python3 - "$url" "$server" <<'TEST'
import os, socket, sys, time
host, port = sys.argv[1].removeprefix("http://").split(":")
many = [socket.create_connection((host, int(port)), timeout=60) for _ in range(40)]
def used():
    fields = open(f"/proc/{sys.argv[2]}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
before = used()
time.sleep(2)
assert used() - before < 1, "seconds of processor time in two seconds"
TEST
eventually well
stop

it "--help shows the whole of an address"
expect 0 "$INTERLOCK" serve --help
contains "$out" "--metrics [HOST:]PORT"

it "refuses addresses that are none"
for where in nonsense 70000 :1 1.2.3.4: host:port -5; do
  expect 64 "$INTERLOCK" serve --metrics "$where"
done
expect 64 "$INTERLOCK" serve
contains "$err" "--metrics"
finish
