"""An MCP server with the tools of an AgentDojo case. It writes the name of each call that reaches it to a file.

usage: office.py CASE LOG     CASE: a JSON file with `first`, `poisoned_result` and `calls`
"""

import json
import pathlib
import sys

TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


def describe(call):
    properties = {name: {"type": TYPES[type(value)]} if value is not None else {} for name, value in call["arguments"].items()}
    return {"name": call["name"], "description": call["name"].replace("_", " "), "inputSchema": {"type": "object", "properties": properties}}


def main():
    case = json.loads(pathlib.Path(sys.argv[1]).read_text())
    tools = {call["name"]: describe(call) for call in [*case["calls"], case["first"]]}
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        method, params = request["method"], request.get("params") or {}
        if method == "initialize":
            result = {"protocolVersion": params.get("protocolVersion", "2025-06-18"), "capabilities": {"tools": {}}, "serverInfo": {"name": "office", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": list(tools.values())}
        elif method == "tools/call":
            with open(sys.argv[2], "a", encoding="utf-8") as log:
                print(json.dumps(params["name"]), file=log)
            text = case["poisoned_result"] if params["name"] == case["first"]["name"] else "Done."
            result = {"content": [{"type": "text", "text": text}]}
        elif method == "ping":
            result = {}
        else:
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}}), flush=True)
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


main()
