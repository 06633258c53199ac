#!/bin/sh
# A small MCP server of the previous revision. It counts its starts in the file `starts` of its folder.
echo start >> starts
echo "shell server is here" >&2
while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
    [ -n "$id" ] || continue
    reply() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
    case $line in
    *'"method":"initialize"'*)
        reply '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}' ;;
    *'"method":"tools/list"'*)
        reply '"result":{"tools":[{"name":"show","description":"Shows its environment.","inputSchema":{"type":"object"}},{"name":"die","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"show"'*)
        reply "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"GIVEN=$GIVEN SECRET=$SOME_API_KEY\"}]}" ;;
    *'"name":"die"'*)
        echo "I am dying" >&2
        exit 3 ;;
    *)
        reply '"error":{"code":-32601,"message":"unknown"}' ;;
    esac
done
