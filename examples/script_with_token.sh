#!/usr/bin/env bash
# A lock that is held over many lines of a script, or over several scripts: acquire prints a token,
# and whoever has the token can extend and release.
#
# If one command is all there is to protect, `interlock run` is simpler and safer: it renews the
# lock, and ends the command if the lock is lost. A token is renewed by nobody but you.
set -euo pipefail
interlock=${INTERLOCK:-interlock}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export INTERLOCK_URL=file://$work/locks

fail() { echo "not so: $*" >&2; exit 1; }

# --pid $$ ties it to this script: if the script is killed, the lock is free at once, and not only
# when its TTL ends.
token=$("$interlock" acquire deploy --ttl 10m --pid $$ --label "deploy by $(id -un)")
trap '"$interlock" release "$token" || true; rm -rf "$work"' EXIT
"$interlock" who deploy

# ... some lines of work. More time is needed: the token may change, so take the new one.
token=$("$interlock" extend "$token" --ttl 10m)

# Others are kept out meanwhile.
status=0
"$interlock" run -n deploy -- true || status=$?
[[ $status = 75 ]] || fail "75 is busy, and not $status"

"$interlock" release "$token"
trap 'rm -rf "$work"' EXIT

# A token is good once. 76 says that the lock had ended before: check it, and don't trust the work
# that was done under it.
status=0
"$interlock" release "$token" || status=$?
[[ $status = 76 ]] || fail "76 is lost, and not $status"
"$interlock" run -n deploy -- echo "free again"
