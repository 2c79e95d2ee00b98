#!/bin/sh
# Submit a goal by REST and wait for its end: examples/submit_goal.sh "Echo the word hello"
# The running local stack is found; FAILSOFT_URL and FAILSOFT_API_KEY name another installation.
set -eu

installation=$(python3 "$(dirname "$0")/failsoft_client.py")
url=${installation% *}
key=${installation#* }
goal=${1:?usage: submit_goal.sh GOAL}

# The key is read from a file by curl, so that it does not show in the process list.
headers=$(mktemp)
trap 'rm -f "$headers"' EXIT
printf 'Authorization: Bearer %s\n' "$key" > "$headers"

field() { python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1]) or "")' "$1"; }

body=$(python3 -c 'import json, sys; print(json.dumps({"goal": sys.argv[1]}))' "$goal")
answer=$(curl --silent --show-error --fail-with-body -H @"$headers" \
  -H "Content-Type: application/json" -d "$body" "$url/api/v1/goals")
id=$(printf '%s' "$answer" | field correlation_id)
echo "submitted: $url/runs/$id/"

while true; do
  record=$(curl --silent --show-error --fail-with-body -H @"$headers" "$url/api/v1/goals/$id")
  status=$(printf '%s' "$record" | field status)
  case $status in
    queued | running) sleep 1 ;;
    *) break ;;
  esac
done

echo "$status: $(printf '%s' "$record" | field user_text)"
[ "$status" = completed ]
