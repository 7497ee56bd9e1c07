#!/usr/bin/env bash
# A job that must not overlap itself. In a crontab it is one line:
#
#   INTERLOCK_URL=file:///var/lib/backup/locks
#   */5 * * * *  /usr/local/bin/interlock run -n -q -E 0 nightly -- /usr/local/bin/backup.sh
#
#   INTERLOCK_URL  where the lock is; without it, one place for each user of this machine
#   -n             if the last run is still going, don't wait for it
#   -q             ... and say nothing, so that cron sends no mail
#   -E 0           ... and that is no failure
#
# The lock goes with the job: when the job ends, or is killed, or the machine reboots, it is free.
set -euo pipefail
interlock=${INTERLOCK:-interlock}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export INTERLOCK_URL=file://$work/locks
cd "$work"

fail() { echo "not so: $*" >&2; exit 1; }

cat >backup.sh <<'BACKUP'
#!/usr/bin/env bash
echo "started with fence $INTERLOCK_FENCE" >>log
until [[ -e finish || ! -e log ]]; do sleep 0.02; done
BACKUP
chmod +x backup.sh

# The first run takes its time.
"$interlock" run -n -q -E 0 nightly -- ./backup.sh &
first=$!
until [[ -s log ]]; do
  kill -0 "$first" 2>/dev/null || fail "the job did not start"
  sleep 0.02
done
"$interlock" who nightly

# Five minutes later cron starts the second one: it sees that and leaves.
"$interlock" run -n -q -E 0 nightly -- ./backup.sh 2>message || fail "-E 0 makes busy a success"
[[ ! -s message ]] || fail "-q says nothing of it"
[[ $(wc -l <log) = 1 ]] || fail "the job ran once"

# Without -E, busy has a status of its own, so that a script can tell it from a failed job.
status=0
"$interlock" run -n nightly -- ./backup.sh || status=$?
[[ $status = 75 ]] || fail "75 is busy, and not $status"

# Wait for it instead, ten seconds at most.
touch finish
"$interlock" run -w 10s nightly -- ./backup.sh
wait "$first"
[[ $(wc -l <log) = 2 ]] || fail "the job ran again"

# The job's own exit status is passed on.
status=0
"$interlock" run nightly -- sh -c 'exit 3' || status=$?
[[ $status = 3 ]] || fail "3 is the job's own"
cat log
