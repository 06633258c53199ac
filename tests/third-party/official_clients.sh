#!/bin/sh
# Runs the official Python clients of OpenAI, Anthropic and Google against the scripted model. Skipped, with a line that says so,
# when they cannot be installed.
# usage: official_clients.sh FOLDER SCRIPTED_MODEL
#   FOLDER          holds the virtual environment; made when absent, used again when there
#   SCRIPTED_MODEL  the scripted-model binary
set -eu

if [ $# -ne 2 ]; then
    sed -n '2,6s/^# //p' "$0" >&2
    exit 2
fi
folder=$1
model=$2
here=$(cd "$(dirname "$0")" && pwd)

if [ ! -x "$folder/venv/bin/python" ]; then
    mkdir -p "$folder"
    python3 -m venv "$folder/venv"
fi
if ! "$folder/venv/bin/python" -c 'import openai, anthropic, google.genai' 2>/dev/null; then
    "$folder/venv/bin/pip" install --quiet openai anthropic google-genai || {
        echo "skipped: pip cannot install the clients here"
        exit 0
    }
fi

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT INT TERM
"$model" "$here/official_clients.yaml" >"$work/urls" 2>"$work/trouble" &
server=$!

# The line with the URLs is written once the port is open.
tries=0
until [ -s "$work/urls" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 100 ] || ! kill -0 "$server" 2>/dev/null; then
        echo "the scripted model did not start:" >&2
        cat "$work/trouble" >&2
        exit 1
    fi
    sleep 0.1
done
base=$(sed -n 's/.*anthropic=\([^ ]*\).*/\1/p' "$work/urls")

status=0
"$folder/venv/bin/python" "$here/official_clients.py" "$base" || status=$?
if [ "$status" -ne 0 ] && [ -s "$work/trouble" ]; then
    echo "what the server says:"
    cat "$work/trouble"
fi
exit "$status"
