#!/usr/bin/env bash
# Runs the official conformance suite for MCP servers and the MCP Inspector against `haft mcp serve`.
# usage: mcp_server.sh NODE NODE_MODULES HAFT SCRIPTED_MODEL
#   NODE          node 22 or later
#   NODE_MODULES  where @modelcontextprotocol/conformance and @modelcontextprotocol/inspector are installed
set -uo pipefail
node=$1 modules=$2 haft=$(realpath "$3") model=$(realpath "$4")
here=$(cd "$(dirname "$0")" && pwd)
failed=0 started=()
work=$(mktemp -d)
trap 'kill "${started[@]}" 2>/dev/null; rm -rf "$work"' EXIT
mkdir -p "$work/home" "$work/project"
export HOME=$work/home HAFT_HOME=$work/home HAFT_MCP_TOKEN=token-of-the-suite
cd "$work/project" || exit 1

# begin NAME COMMAND…: starts a program and waits for its first line.
begin() {
    local name=$1
    shift
    "$@" >"$work/$name" 2>"$work/$name.log" &
    started+=($!)
    for _ in $(seq 300); do
        [ -s "$work/$name" ] && return 0
        sleep 0.1
    done
    echo "FAILED $name does not start"
    exit 1
}

# check WHAT COMMAND…: the command succeeds.
check() {
    local what=$1
    shift
    if "$@" >"$work/check.log" 2>&1; then
        echo "ok     $what"
    else
        echo "FAILED $what"
        tail -n 40 "$work/check.log"
        failed=1
    fi
}

printf 'replies:\n  - text: Hello from haft.\n    times: 9\n' >"$work/script.yaml"
begin model "$model" "$work/script.yaml"
url=$(sed 's/.* anthropic=\([^ ]*\).*/\1/' "$work/model")
cat >"$work/home/config.toml" <<TOML
model = "mock/any"
[providers.mock]
api = "anthropic"
base_url = "$url"
TOML

begin server "$haft" mcp serve --http
served=$(head -n 1 "$work/server")
begin proxy "$node" "$here/mcp_token_proxy.mjs" "$(sed 's/.*:\([0-9]*\)\/mcp/\1/' <<<"$served")" "$HAFT_MCP_TOKEN"
for revision in 2025-11-25 2026-07-28; do
    check "conformance of the server, $revision" timeout 250 "$node" "$modules/@modelcontextprotocol/conformance/dist/index.js" \
        server --url "$(head -n 1 "$work/proxy")" --requirements "$revision" \
        --expected-failures "$here/conformance-server-$revision.yaml"
done

inspector=$modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js
inspect() { timeout 60 "$node" "$inspector" --cli "$@"; }
# calls ARGUMENTS…: the inspector gives a task, and haft does it.
calls() { inspect "$@" --method tools/call --tool-name start_task --tool-arg prompt=hi wait_seconds=30 | grep -q 'Hello from haft.'; }
header="Authorization: Bearer $HAFT_MCP_TOKEN"
check "inspector: schemas, stdio" inspect "$haft" mcp serve -e "HOME=$HOME" -e "HAFT_HOME=$HAFT_HOME" --method tools/list --strict
check "inspector: schemas, HTTP" inspect "$served" --header "$header" --method tools/list --strict
check "inspector: a task, stdio" calls "$haft" mcp serve -e "HOME=$HOME" -e "HAFT_HOME=$HAFT_HOME"
check "inspector: a task, HTTP" calls "$served" --header "$header"
exit "$failed"
