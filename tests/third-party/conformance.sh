#!/usr/bin/env bash
# Runs the official conformance suite for MCP clients against haft's, for both revisions of the protocol.
# usage: conformance.sh NODE NODE_MODULES CLIENT
#   NODE          node 22 or later
#   NODE_MODULES  where @modelcontextprotocol/conformance is installed
#   CLIENT        the `conformance_client` example of crates/extensions/mcp
set -uo pipefail
node=$1 modules=$2 client=$(realpath "$3")
here=$(cd "$(dirname "$0")" && pwd)
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# The suite splits the command at spaces, which the path of the client may have.
ln -s "$client" client
for revision in 2025-11-25 2026-07-28; do
    log=$work/$revision.log
    if timeout 280 "$node" "$modules/@modelcontextprotocol/conformance/dist/index.js" client --command "$work/client" \
        --requirements "$revision" --expected-failures "$here/conformance-$revision.yaml" >"$log" 2>&1; then
        echo "ok     $revision: $(grep -c '^✓' "$log") scenarios"
    else
        echo "FAILED $revision"
        tail -n 40 "$log"
        failed=1
    fi
done
exit "$failed"
