#!/usr/bin/env bash
# The place of the locks if nobody names one: one for each kind of user, wherever the command runs.
source "$(dirname "$0")/cli_lib.bash"
unset INTERLOCK_URL INTERLOCK_CONFIG LOCKING_BACKEND REDIS_HOST REDIS_PORT REDIS_DB REDIS_PASSWORD

url() { "$@" "$INTERLOCK" config --json | python3 -c 'import json,sys
print({s["key"]: s["value"] for s in json.load(sys.stdin)["settings"]}["url"])'; }

it "is below /dev/shm for users of the system, and below /var/tmp for others"
if [ "$(id -u)" -lt 1000 ]; then base=/dev/shm; else base=/var/tmp; fi
same "$(url env)" "file://$base/interlock-$(id -u)"

it "does not depend on the environment"
same "$(url env -i)" "$(url env)"
same "$(url env HOME=/nonexistent XDG_RUNTIME_DIR=/nonexistent TMPDIR=/nonexistent)" "$(url env)"

# The rest takes other users and mounts, in a mount namespace of this test's own.
if [ "$(id -u)" -ne 0 ] || ! unshare --mount true 2>err; then
  echo "not root, or no mount namespaces: the rest was left out"
  finish
fi
if [ "${1:-}" != --inside ]; then
  check unshare --mount --propagation private "$here/cli_default_place.sh" --inside
  finish
fi

user=64242  # of nobody
as_user() { setpriv --reuid=$user --regid=$user --clear-groups env -i PATH="$PATH" "$@"; }
# private DIRECTORY COMMAND…: as a service with PrivateTmp=yes sees it.
with_private_tmp() {
  unshare --mount bash -c '
    for at in tmp var/tmp; do
      mkdir -p "/mnt/systemd-private-1-a.service/$at" && chmod 1777 "/mnt/systemd-private-1-a.service/$at"
      mount --bind "/mnt/systemd-private-1-a.service/$at" "/$at" || exit 99
    done
    exec "$@"' private "$@"
}
chmod 755 "$work"
for directory in /var/tmp /dev/shm /mnt; do
  mount -t tmpfs -o mode=1777 none "$directory"
done
# Where the build is, others may not be let in.
cp "$INTERLOCK" /mnt/interlock
INTERLOCK=/mnt/interlock
cd /

it "is the same for a user, whatever the environment"
same "$(url as_user)" file:///var/tmp/interlock-$user
same "$(url as_user env HOME=/nonexistent XDG_RUNTIME_DIR=/run/user/$user)" file:///var/tmp/interlock-$user

it "is held through the end of a login, which empties /dev/shm"
mkfifo "$work/go"
as_user "$INTERLOCK" run nightly -- cat <"$work/go" & job=$!
exec 7>"$work/go"
held() { as_user "$INTERLOCK" who "$1" >/dev/null 2>&1; }
eventually held nightly
find /dev/shm -uid $user -delete
expect 75 as_user "$INTERLOCK" run -n nightly -- true

it "is refused in a service that has a /var/tmp of its own"
expect 69 with_private_tmp setpriv --reuid=$user --regid=$user --clear-groups env -i "$INTERLOCK" run -n nightly -- true
contains "$err" PrivateTmp
contains "$err" INTERLOCK_URL
expect 0 with_private_tmp setpriv --reuid=$user --regid=$user --clear-groups env -i \
  "INTERLOCK_URL=file:///dev/shm/named" "$INTERLOCK" run -n nightly -- true

it "is not given up for another where this process may not write"
expect 69 unshare --mount bash -c 'mount --bind /var/tmp /var/tmp && mount -o remount,bind,ro /var/tmp && exec "$@"' - \
  setpriv --reuid=$user --regid=$user --clear-groups env -i "$INTERLOCK" run -n nightly -- true
contains "$err" /var/tmp/interlock-$user

it "is left alone by what cleans up /var/tmp"
refute flock --nonblock --exclusive /var/tmp/interlock-$user true
exec 7>&-
ends "$job" 0
check flock --nonblock --exclusive /var/tmp/interlock-$user true

it "is the same for a user of the system in a service with a /tmp of its own"
system=987
mkfifo "$work/system"
setpriv --reuid=$system --regid=$system --clear-groups "$INTERLOCK" run nightly -- cat <"$work/system" & job=$!
exec 7>"$work/system"
held_by_system() { setpriv --reuid=$system --regid=$system --clear-groups "$INTERLOCK" who nightly >/dev/null 2>&1; }
eventually held_by_system
expect 75 with_private_tmp setpriv --reuid=$system --regid=$system --clear-groups "$INTERLOCK" run -n nightly -- true
exec 7>&-
ends "$job" 0

it "is below /tmp where there is nothing else"
expect 0 unshare --mount bash -c 'mount -t tmpfs none /dev && mount -t tmpfs none /var && exec "$@"' - \
  setpriv --reuid=$user --regid=$user --clear-groups env -i "$INTERLOCK" config
contains "$out" "file:///tmp/interlock-$user"

it "is refused while locks are held where builds before 0.2 kept them"
former=file:///dev/shm/interlock-$user
mkfifo "$work/old"
as_user "$INTERLOCK" run --url "$former" nightly -- cat <"$work/old" & job=$!
exec 7>"$work/old"
held_there() { as_user "$INTERLOCK" who --url "$former" nightly >/dev/null 2>&1; }
eventually held_there
expect 69 as_user "$INTERLOCK" run -n nightly -- true
contains "$err" "'nightly' is held by process"
contains "$err" "$former"
expect 75 as_user env "INTERLOCK_URL=$former" "$INTERLOCK" run -n nightly -- true
exec 7>&-
ends "$job" 0
expect 0 as_user "$INTERLOCK" run -n nightly -- true

it "is refused if another user made it first, and says how to put that right"
blocked=64244
as_blocked() { setpriv --reuid=$blocked --regid=$blocked --clear-groups env -i PATH="$PATH" "$@"; }
place=/var/tmp/interlock-$blocked
mischief() { setpriv --reuid=$user --regid=$user --clear-groups "$@"; }
for made in "mkdir -m 0700" "mkdir -m 0777" touch "ln -s /dev/shm" "ln -s /missing" mkfifo; do
  # shellcheck disable=SC2086
  mischief $made "$place"
  expect 69 as_blocked "$INTERLOCK" run -n nightly -- touch /mnt/ran
  refute test -e /mnt/ran
  contains "$err" "$place, was made by user $user"
  contains "$err" "--url"
  expect 0 as_blocked "$INTERLOCK" run --url "file:///var/tmp/named-$blocked" -n nightly -- true
  mischief rm -rf "$place"
done
mischief mkdir "$place"
expect 69 as_blocked "$INTERLOCK" list
way=$(grep -o 'rm -rf [^;]*' <<<"$err")
same "$way" "rm -rf $place && mkdir -m 0700 $place && chown $blocked $place"
check sh -c "$way"
expect 0 as_blocked "$INTERLOCK" run -n nightly -- true
same "$(stat -c '%u %a' "$place")" "$blocked 700"

it "can be made for a user before the first lock"
prepared=64245
install -d -m 0700 -o $prepared /var/tmp/interlock-$prepared
expect 1 mischief rmdir /var/tmp/interlock-$prepared
expect 1 mischief mv /var/tmp/interlock-$prepared /var/tmp/away
expect 0 setpriv --reuid=$prepared --regid=$prepared --clear-groups env -i "$INTERLOCK" acquire nightly
check test -n "$(ls /var/tmp/interlock-$prepared)"
if command -v systemd-tmpfiles >/dev/null; then
  prepared=64246
  echo "d /var/tmp/interlock-$prepared 0700 $prepared - - -" >/mnt/interlock.conf
  check systemd-tmpfiles --create /mnt/interlock.conf
  expect 0 setpriv --reuid=$prepared --regid=$prepared --clear-groups env -i "$INTERLOCK" acquire nightly
  check test -n "$(ls /var/tmp/interlock-$prepared)"
fi

it "an interlock.json of another user stops nobody, and says that it was not read"
mkdir -m 1777 /mnt/shared
cd /mnt/shared
for made in 'echo {' 'printf {"url":"redis://h"}'; do
  # shellcheck disable=SC2086
  mischief sh -c '"$@" >interlock.json' - $made
  for run in env as_blocked; do
    expect 0 $run "$INTERLOCK" run -n nightly -- true
    same "$(wc -l <<<"$err")" 1
    contains "$err" "warning: /mnt/shared/interlock.json was not read"
    contains "$err" "it belongs to user $user"
  done
  expect 0 env INTERLOCK_CONFIG=/dev/null "$INTERLOCK" run -n nightly -- true
  same "$err" ""
  expect 0 "$INTERLOCK" --log-level warning run -n nightly -- true
  contains "$err" "was not read"
done
mischief chmod 0600 interlock.json
expect 0 as_blocked "$INTERLOCK" run -n nightly -- true
contains "$err" "was not read"
mischief ln -sf /etc/passwd interlock.json
expect 0 "$INTERLOCK" run -n nightly -- true
contains "$err" "was not read"
mischief rm interlock.json
mischief sh -c 'mkfifo interlock.json'
expect 0 "$INTERLOCK" run -n nightly -- true
contains "$err" "was not read"
cd /

it "can be used whatever the umask of the process that made it"
for mask in 177 777; do
  rm -rf "/var/tmp/interlock-$user"
  expect 0 as_user sh -c 'umask '$mask' && exec "$@"' sh "$INTERLOCK" run -n nightly -- true
  expect 0 as_user "$INTERLOCK" run -n nightly -- "$INTERLOCK" who nightly
done
chmod 0600 "/var/tmp/interlock-$user/wake" && chmod 0600 "/var/tmp/interlock-$user"  # as earlier builds left it
expect 0 as_user "$INTERLOCK" run -n nightly -- "$INTERLOCK" who nightly

it "is not made by what only looks"
looking=64247
as_looking() { setpriv --reuid=$looking --regid=$looking --clear-groups env -i "$INTERLOCK" "$@"; }
expect 1 as_looking who nightly
same "$out" "nightly: free in file:///var/tmp/interlock-$looking"
expect 0 as_looking list --json
same "$out" '{"store":"file:///var/tmp/interlock-64247","resources":[]}'
expect 0 as_looking top --once
expect 0 as_looking repair
contains "$out" "nothing to repair: file:///var/tmp/interlock-$looking does not exist yet"
expect 0 as_looking config --check
contains "$out" "the store file:///var/tmp/interlock-$looking does not exist yet; the first lock makes its directory"
expect 1 as_looking deadlocks
expect 1 as_looking break --yes nightly
refute test -e /var/tmp/interlock-$looking
(exec setpriv --reuid=$looking --regid=$looking --clear-groups env -i "$INTERLOCK" watch --interval 20ms) >"$work/changes" & watcher=$!
expect 0 as_looking acquire nightly
eventually grep -q "nightly held by" "$work/changes"
kill -TERM "$watcher"
ends "$watcher" 143

it "does not look at what another user has put there"
mkdir /dev/shm/interlock-64243
expect 0 setpriv --reuid=64243 --regid=64243 --clear-groups env -i "$INTERLOCK" run -n nightly -- true

finish
