#!/usr/bin/env bash
# The directories above a file store: who else may rename them, and with them the store.
source "$(dirname "$0")/cli_lib.bash"

it "does not use a store that others could put another one in the place of"
mkdir -p above/between
chmod 0777 above
expect 69 "$INTERLOCK" run --url "file://$work/above/between/locks" -n a -- touch ran
refute test -e ran
contains "$err" "others than its owner can write to $work/above (mode 0777)"
contains "$err" "chmod go-w $work/above"
expect 69 "$INTERLOCK" repair --url "file://$work/above/between/locks"
chmod 0755 above
expect 0 "$INTERLOCK" run --url "file://$work/above/between/locks" -n a -- true

it "takes owners that a user namespace does not map for root"
if unshare -U true 2>/dev/null; then
  expect 0 unshare -U --map-current-user "$INTERLOCK" run --url "file://$work/above/between/locks" -n a -- true
fi

# The rest takes other users, and names for them.
if [ "$(id -u)" -ne 0 ] || ! unshare --mount true 2>err; then
  echo "not root, or no mount namespaces: the rest was left out"
  finish
fi
if [ "${1:-}" != --inside ]; then
  check unshare --mount --propagation private "$here/cli_ancestors.sh" --inside
  finish
fi

alice=64251
bob=64252
group=64253
mount -t tmpfs -o mode=755 none /mnt
cp "$INTERLOCK" /mnt/interlock
INTERLOCK=/mnt/interlock
cp /etc/passwd /etc/group /mnt
echo "alice:x:$alice:$alice::/mnt/alice:/bin/sh
bob:x:$bob:$bob::/mnt/bob:/bin/sh" >>/mnt/passwd
mount --bind /mnt/passwd /etc/passwd
mount --bind /mnt/group /etc/group
as() { local id=$1; shift; setpriv --reuid="$id" --regid="$id" --clear-groups env -i PATH="$PATH" "$@"; }
locks() { as $alice "$INTERLOCK" run --url "file:///mnt/alice/projects/locks" -n a -- true; }
groups() { (grep -v 6425 /mnt/group; printf '%s\n' "$@") >/mnt/new; cat /mnt/new >/etc/group; }
groups "alice:x:$alice:" "shared:x:$group:"
install -d -m 0755 -o $alice -g $alice /mnt/alice
install -d -m 0775 -o $alice -g $alice /mnt/alice/projects

it "takes a user's own group for the user, as with a umask of 002"
expect 0 locks
groups "alice:x:$alice:alice" "shared:x:$group:"
expect 0 locks

it "and no group that others are in, or that has another name"
for line in "alice:x:$alice:bob" "alice:x:$alice:alice,bob" "users:x:$alice:"; do
  groups "$line"
  expect 69 locks
  contains "$err" "others than its owner can write to /mnt/alice/projects (mode 0775)"
done
groups
expect 69 locks

it "and no group that is the primary one of another user"
groups "alice:x:$alice:"
users=$(</etc/passwd)
echo "carol:x:6499:$alice::/:/bin/sh" >>/etc/passwd
expect 69 locks
echo "$users" >/etc/passwd
expect 0 locks

it "goes by mode and group"
groups "alice:x:$alice:" "shared:x:$group:bob"
chgrp $group /mnt/alice/projects
expect 69 locks
chmod g-w /mnt/alice/projects
expect 0 locks
chgrp $alice /mnt/alice/projects
chmod g+w /mnt/alice/projects
expect 0 locks
if command -v setfacl >/dev/null && setfacl -m u:$bob:rwx /mnt/alice/projects 2>/dev/null; then
  expect 69 locks
  setfacl -b /mnt/alice/projects
  expect 0 locks
fi

it "keeps two processes apart whatever another user does"
# Without the check: bob renames the directory while the lock is held, and the second process makes one anew.
install -d -m 0755 -o $bob /mnt/bob
install -d -m 0700 -o $alice /mnt/bob/alice
expect 69 as $alice "$INTERLOCK" run --url file:///mnt/bob/alice/locks -n a -- true
contains "$err" "/mnt/bob above it belongs to user $bob"
install -d -m 1777 /mnt/sticky
install -d -m 0700 -o $alice /mnt/sticky/alice
expect 0 as $alice "$INTERLOCK" run --url file:///mnt/sticky/alice/locks -n a -- true
as $bob ln -s /mnt/sticky /mnt/sticky/link
expect 69 as $alice "$INTERLOCK" run --url file:///mnt/sticky/link/alice/locks -n a -- true
contains "$err" "belongs to user $bob"
ln -s sticky /mnt/link
expect 0 as $alice "$INTERLOCK" run --url file:///mnt/link/alice/locks -n a -- true

finish
