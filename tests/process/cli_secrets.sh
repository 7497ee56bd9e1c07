#!/usr/bin/env bash
# Passwords, tokens and owners: who gets to see them.
source "$(dirname "$0")/cli_lib.bash"
export INTERLOCK
unset INTERLOCK_CONFIG LOCKING_BACKEND REDIS_HOST REDIS_PASSWORD GRPC_VERBOSITY

it "gives the command the owner as others see it, by which nobody can release"
expect 0 "$INTERLOCK" run a -- sh -c 'echo "$INTERLOCK_OWNER"; "$INTERLOCK" who --json a'
owner=$(head -n 1 out)
check test "${#owner}" = 8
contains "$out" "\"owner\":\"$owner\""

it "leaves the environment of the command as it is, but for its own variables"
expect 0 "$INTERLOCK" run a -- env
same "$(sort out | grep -v '^INTERLOCK\|^_=')" "$(env | sort | grep -v '^INTERLOCK\|^_=')"

it "warns of a password in --url, and of nothing else"
for url in 'redis:/127.0.0.1:1' 'redis://127.0.0.1:1?timout=3s' file:./locks 'file:~/locks' 'file:///tmp/q?x=1' 'file:///a@b?x=1' \
  'postgres://h/db?x=@' 'redis://h?password-file=/x&x=1' nonsense; do
  "$INTERLOCK" list --url "$url" >/dev/null 2>err
  refute grep -q warning err
  same "$(wc -l <err)" 1
done
for url in 'redis://me:geheim@h?timout=3s' 'redis://:geheim@h:x' 'redis:me:geheim@h' 'redis://:ge/heim@h' 'redis://h?password=geheim&x=1' \
  'redis://h:x?sentinel-password=geheim'; do
  "$INTERLOCK" list --url "$url" >/dev/null 2>err
  check grep -q 'warning: other users could see the password in --url' err
  refute grep -q heim err
done

if ! command -v redis-server >/dev/null; then
  echo "the rest takes redis-server"
  finish
fi
socket=$work/redis.sock
redis-server --port 0 --unixsocket "$socket" --requirepass geheim --save '' --dir "$work" >redis.log 2>&1 &
redis=$!
eventually test -S "$socket"
url="redis+unix://:geheim@$socket"
shown="redis+unix://:***@$socket"
words_of() { tr '\0' ' ' <"/proc/$1/cmdline"; }

# waits WORDS…: interlock WORDS… -- a command that ends when there is a file `enough`; $job is its process.
waits() {
  rm -f started enough
  "$INTERLOCK" "$@" -- sh -c 'touch started; until test -e enough; do sleep 0.05; done' 'redis://:mine@h' 2>message &
  job=$!
  eventually test -e started
}

it "hides passwords in its own words and in those of the guardian, also of the command"
for words in "run --url $url a" "--url $url run a" "run a --url=$url" "--url=$url run a"; do
  # shellcheck disable=SC2086
  waits $words
  for pid in $job $(pgrep -P $job); do
    refute grep -q geheim "/proc/$pid/cmdline"
    contains "$(words_of "$pid")" "$shown"
    contains "$(words_of "$pid")" 'redis://:***@h'
  done
  touch enough
  ends $job 0
  contains "$(<message)" "other users could see the password in --url for a moment"
done
"$INTERLOCK" serve --metrics 0 --url "$url" 2>message &
job=$!
eventually grep -q http message
refute grep -q geheim "/proc/$job/cmdline"
kill "$job"

it "hides passwords from the words of a simulation's processes, also while they start"
# The loader of each program waits at this pipe, before the program could hide anything.
mkfifo gate
LD_PRELOAD=$work/gate "$INTERLOCK" simulate speed --url "$url" --processes 2 --duration 500ms >simulated 2>&1 &
job=$!
: >gate
full_program() { [[ $(readlink "/proc/$job/exe") != "$(readlink -f "$INTERLOCK")" ]]; }
eventually full_program
: >gate
members() {
  local pid
  for pid in $(pgrep -P "$job"); do [[ $(words_of "$pid") == *" --member="* ]] && echo "$pid"; done
}
both_start() { (($(members | wc -l) == 2)); }
eventually both_start
for pid in $job $(members); do
  refute grep -q geheim "/proc/$pid/cmdline"
  contains "$(words_of "$pid")" "simulate speed"
done
while alive $job; do : >gate; done &
opens=$!
ends $job 0
kill -KILL "$opens" 2>/dev/null
contains "$(<simulated)" "No two were where only one may be."

it "hides a token, too"
token=$("$INTERLOCK" acquire b --url "$url" 2>/dev/null)
kill -STOP "$redis"  # the server does not answer for now
"$INTERLOCK" release "$token" --url "$url?timeout=60s" >message 2>&1 &
job=$!
eventually grep -q 'il1\.\*\*\*' "/proc/$job/cmdline"
refute grep -qF "$(cut -d. -f2 <<<"$token")" "/proc/$job/cmdline"
kill -KILL "$job"
kill -CONT "$redis"

it "does not warn of a password that is not on the command line"
INTERLOCK_URL=$url expect 0 "$INTERLOCK" run a -- true
same "$err" ""

it "does not let a command that was given no password lock in another store"
expect 0 "$INTERLOCK" run --url "$url" a -- env
refute grep -q geheim out
for inner in 'list' 'run x -- true' 'acquire x' 'config --check'; do
  # shellcheck disable=SC2086
  expect 64 "$INTERLOCK" run --url "$url" a -- "$INTERLOCK" $inner
  contains "$err" "interlock run withholds the URL of its store from its command, as it has a password"
done
expect 0 "$INTERLOCK" run --url "$url" a -- "$INTERLOCK" list --url "$url"

it "finds the same store in a directory with other settings, wherever its password comes from"
mkdir -p -m 0700 elsewhere strangers
printf '{"url": "file://%s/strangers"}' "$work" >elsewhere/interlock.json
there='cd elsewhere && exec "$INTERLOCK" who a'
expect 0 env INTERLOCK_URL="$url" "$INTERLOCK" run a -- sh -c "$there"
expect 64 "$INTERLOCK" run --url "$url" a -- sh -c "$there"
printf '{"url": "%s"}' "$url" >named.json && chmod 0600 named.json
expect 0 "$INTERLOCK" --config named.json run a -- sh -c "$there"
expect 64 "$INTERLOCK" --config <(cat named.json) run a -- sh -c "$there"

it "takes the store's secrets out of the command's environment with --scrub"
export INTERLOCK_URL=$url
expect 0 "$INTERLOCK" run a -- env
contains "$out" geheim
expect 0 "$INTERLOCK" run --scrub a -- env
refute grep -q geheim out
expect 64 "$INTERLOCK" run --scrub a -- "$INTERLOCK" list
contains "$err" "withholds"
unset INTERLOCK_URL  # it goes before the file
export INTERLOCK_CONFIG=$work/interlock.json
printf '{"url": "redis+unix://%s?password-env=PASSWORD"}' "$socket" >interlock.json
export PASSWORD=geheim
expect 0 "$INTERLOCK" run a -- "$INTERLOCK" who a
expect 0 "$INTERLOCK" run --scrub a -- env
refute grep -q geheim out
expect 64 "$INTERLOCK" run --scrub a -- "$INTERLOCK" list
rm interlock.json
unset PASSWORD INTERLOCK_CONFIG
expect 0 "$INTERLOCK" run --scrub --url "file://$work/locks" a -- "$INTERLOCK" who a --url "file://$work/locks"
expect 0 "$INTERLOCK" run --scrub --url "file://$work/locks" a -- "$INTERLOCK" who a
finish
