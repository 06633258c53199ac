"""A bare agent loop, the baseline: four tools, native calls, until the model answers with text.

    bare.py BASE_URL TURNS PROMPT [text]

With `text` it also takes one JSON object in a code fence for a call: without that, a model that writes its calls so ends at the
first request, having done nothing, and what it took says nothing about agents that do the work.
"""

import json
import pathlib
import re
import subprocess
import sys
import urllib.request


def read_file(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def write_file(path, content):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(content, encoding="utf-8")
    return "written"


def edit_file(path, old, new):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise ValueError(f"`old` is in the file {text.count(old)} times; it must be there once")
    return write_file(path, text.replace(old, new))


def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=30)
    return f"exit code {done.returncode}\n{(done.stdout + done.stderr)[-4000:]}"


TOOLS = {read_file: ["path"], write_file: ["path", "content"], edit_file: ["path", "old", "new"], run: ["command"]}
OFFERED = [
    {
        "type": "function",
        "function": {
            "name": tool.__name__,
            "parameters": {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names},
        },
    }
    for tool, names in TOOLS.items()
]


def written(text):
    """The call a text is, as the API would give it."""
    try:
        call = json.loads(re.fullmatch(r"\s*(?:```\w*\n)?(.*?)(?:\n```)?\s*", text, re.S)[1])
        return [{"id": "text", "type": "function", "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}]
    except (ValueError, TypeError, KeyError):
        return None


def main():
    url, turns, prompt, reads_text = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:] == ["text"]
    messages = [{"role": "system", "content": "You work on the files in the current folder with the tools."}, {"role": "user", "content": prompt}]
    for _ in range(turns):
        body = json.dumps({"model": "model", "messages": messages, "tools": OFFERED, "max_tokens": 2048}).encode()
        request = urllib.request.Request(url + "/chat/completions", body, {"content-type": "application/json"})
        message = json.load(urllib.request.urlopen(request, timeout=120))["choices"][0]["message"]
        calls = reads_text and not message.get("tool_calls") and written(message.get("content") or "")
        if calls:
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        messages.append(message)
        if not message.get("tool_calls"):
            print(message.get("content") or "")
            return
        for call in message["tool_calls"]:
            try:
                tool = next(tool for tool in TOOLS if tool.__name__ == call["function"]["name"])
                result = tool(**json.loads(call["function"]["arguments"]))
            except Exception as error:
                result = f"Error: {error!r}"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    sys.exit(4)


main()
