#!/usr/bin/env bash
# Porcupine passes a history that is in order, and finds what was planted in another.
set -euo pipefail

# An empty file: Go did not find the module.
if [ ! -s "$PORCUPINE" ]; then
  echo "skipped: Porcupine was not built"
  exit 77
fi
directory=$(mktemp --directory)
trap 'rm -r "$directory"' EXIT

fail() {
  echo "FAILED: $1"
  exit 1
}

# line FILE TIME KIND FIELDS
line() {
  echo "{\"t\":$2,\"k\":\"$3\",$4}" >>"$directory/$1.log"
}

# A lease of a, asked and told at these times, and valid for long: granted WORKER OP ASKED TOLD [FIELDS]
granted() {
  line "worker-$1" "$3" ask "\"op\":\"$2\",\"hand\":1,\"verb\":\"acquire\",\"parts\":[{\"r\":\"a\",\"m\":\"exclusive\"}]${5:-}"
  line "worker-$1" "$4" holds "\"op\":\"$2\",\"lease\":\"$2\",\"owner\":\"o$2\",\"r\":\"a\",\"m\":\"exclusive\",\"asked\":$3,\"until\":100000"
}

# released WORKER LEASE LEFT TOLD
released() {
  line "worker-$1" "$3" leaves "\"lease\":\"$2\",\"r\":\"a\""
  line "worker-$1" "$3" ask "\"op\":\"$2r\",\"verb\":\"release\",\"lease\":\"$2\""
  line "worker-$1" "$4" told "\"op\":\"$2r\",\"answer\":\"released\""
}

# expect STATUS WORDS: of the history so far, which is then forgotten
expect() {
  local status=0 said
  said=$("$PORCUPINE" --picture "$directory/picture.html" "$directory" 2>&1) || status=$?
  [ "$status" = "$1" ] || fail "$3: status $status instead of $1: $said"
  [[ $said == *"$2"* ]] || fail "$3: $said does not say $2"
  rm -f "$directory"/*.log
}

granted 1.0 one 10 20
granted 2.0 two 11 40
released 1.0 one 30 50
released 2.0 two 60 70
granted 1.0 three 12 65
expect 0 '"looked_at":6,"ok":true,"resources":["a"]' "one after the other"
[ ! -e "$directory/picture.html" ] || fail "there is a picture of a history that is in order"

granted 1.0 one 10 20
granted 2.0 two 11 40
released 1.0 one 41 50
released 2.0 two 60 70
expect 1 '"resource":"a"' "two at once"
grep -q "acquire two" "$directory/picture.html" || fail "the picture does not show the history"

# Told so late that its time was over: somebody else has held it meanwhile, and given it back.
line worker-1.0 10 ask '"op":"one","hand":1,"verb":"acquire","parts":[{"r":"a","m":"exclusive"}]'
line worker-1.0 60 holds '"op":"one","lease":"one","owner":"oone","r":"a","m":"exclusive","asked":10,"until":30'
granted 2.0 two 11 40
released 2.0 two 70 80
expect 0 '"looked_at":2,"ok":true' "told too late"

# Without its end, the first one would be there for ever.
granted 1.0 one 10 20
line director 30 killed '"worker":"1.0"'
granted 2.0 two 11 40
line worker-2.0 50 lost '"lease":"two"'
granted 3.0 three 45 60
line director 65 breaks '"owner":"othree"'
granted 4.0 four 45 70
expect 0 '"looked_at":8,"ok":true' "killed, lost and evicted"

granted 1.0 one 10 20
line director 41 killed '"worker":"1.0"'
granted 2.0 two 11 40
expect 1 '"resource":"a"' "granted before the kill"

# Its belief ends by itself.
granted 1.0 one 10 20
granted 2.0 two 11 100000
expect 0 '"ok":true' "granted after the end of the validity"

granted 1.0 one 10 20
granted 2.0 two 11 40 ',"identity":"Ann"'
granted 3.0 three 11 40 ',"hierarchy":true'
echo -n '{"t":50,"k":"ho' >>"$directory/worker-1.0.log"
expect 0 '"looked_at":2' "others than plain mutexes, and a line that was not finished"

granted 1.0 one 10 20
granted 2.0 two 11 40
line director 5 fault '"n":1,"name":"failover","voids":true'
expect 0 '"skipped":' "a fault that voids the promise"

echo nonsense >>"$directory/director.log"
expect 2 "director.log:1 is no line" "a line that is none"
echo "ok"
