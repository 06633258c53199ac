"""Stands between any agent and the model: gives each run its seed, and notes what was asked and answered.

In place of a model it can give the replies that were kept of earlier runs, each at its place: what an agent makes of the same
replies after a change. What comes after the last one is that one again. Folders of the earlier run are those of the new one in them.

A run's base URL holds its name, so that one gateway serves many runs at once. Measured here, the figures of all agents mean the
same thing.
"""

import http.client
import http.server
import json
import re
import threading
import urllib.parse

TEMPERATURE = 0.2
FOLDER = re.compile(r"/[^ `\"\\]*/real-model-[a-z0-9_]+")
FENCED_CALL = re.compile(r"<tool_call>|```(?:json|tool_call)?\s*\{[^`]*\"(?:name|tool|function)\"", re.S)


# How results of haft, the bare loop, codex and goose begin when a call failed.
FAILED = re.compile(
    r"^\W*error|\"status\": ?\"error\"|<error|^(?:process )?exit(?:ed with)? (?:code|status):? [1-9]|^`[^`]+` (?:does not exist|did not run|needs the user's permission"
    r"|is not permitted)|^There is no tool|; nothing was changed|nothing would change",
    re.I,
)


class Gateway:
    def __init__(self, upstream, replies=None):
        self.upstream = urllib.parse.urlsplit(upstream or "")
        self.replies = replies
        self.runs = {}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def open(self, name, seed):
        self.runs[name] = {"seed": seed, "exchanges": []}
        return f"http://127.0.0.1:{self.server.server_port}/{name}/v1"

    def close(self, name):
        return self.runs.pop(name)["exchanges"]

    def kept(self, name):
        path = self.replies / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"last_request": None, "replies": []}


def handler(gateway):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.forward(b"", None)

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            run = gateway.runs.get(self.path.split("/")[1])
            exchange = None
            if run is not None and self.path.endswith(("/chat/completions", "/responses")):
                request = json.loads(body) | {"seed": run["seed"], "temperature": TEMPERATURE}
                if request.get("stream") and self.path.endswith("/chat/completions"):
                    request["stream_options"] = {"include_usage": True}
                body = json.dumps(request).encode()
                exchange = {"request": request, "reply": b""}
                run["exchanges"].append(exchange)
            if gateway.replies is None:
                self.forward(body, exchange)
            else:
                self.replay(exchange)

        def replay(self, exchange):
            run = self.path.split("/")[1]
            reply = b"{}"
            if exchange is not None:
                kept = gateway.kept(run)
                reply = as_stream(kept, len(gateway.runs[run]["exchanges"]) - 1, exchange["request"])
                exchange["reply"] = reply
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if reply.startswith(b"data:") else "application/json")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def forward(self, body, exchange):
            path = gateway.upstream.path.removesuffix("/v1") + "/" + self.path.split("/", 2)[2]
            connection = http.client.HTTPConnection(gateway.upstream.netloc, timeout=600)
            headers = {"content-type": "application/json", "authorization": self.headers.get("authorization", "Bearer none")}
            try:
                connection.request(self.command, path, body or None, headers)
                reply = connection.getresponse()
                self.send_response(reply.status)
                self.send_header("content-type", reply.getheader("content-type", "application/json"))
                self.send_header("connection", "close")
                self.end_headers()
                while chunk := reply.read1(65536):
                    if exchange is not None:
                        exchange["reply"] += chunk
                    self.wfile.write(chunk)
                    self.wfile.flush()
            except OSError:
                # The agent has gone, or the model; either notices by itself.
                pass
            finally:
                connection.close()
                self.close_connection = True

    return Handler


def as_stream(kept, index, request):
    """The reply at this place as events, or whole where the request wants no stream."""
    replies = kept["replies"] or [[0, 0, [], "There is no reply."]]
    taken, given, calls, text = replies[min(index, len(replies) - 1)]
    folders = [FOLDER.search(json.dumps(sent or {})) for sent in (kept["last_request"], request)]
    moved = (lambda part: part.replace(folders[0][0], folders[1][0])) if all(folders) else str
    calls = [
        {"index": at, "id": f"call_{index}_{at}", "type": "function", "function": {"name": name, "arguments": moved(arguments)}}
        for at, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": moved(text)} | ({"tool_calls": calls} if calls else {})
    ended = {"index": 0, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}
    if not request.get("stream"):
        return json.dumps({"id": "kept", "object": "chat.completion", "choices": [ended | {"message": message}], "usage": usage}).encode()
    chunks = [{"index": 0, "delta": message}, ended | {"delta": {}}]
    events = [{"id": "kept", "object": "chat.completion.chunk", "choices": [chunk]} for chunk in chunks]
    events.append({"id": "kept", "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n"


def messages_of(reply):
    """The JSON objects of a reply, streamed or not."""
    text = reply.decode("utf-8", "replace")
    pieces = [line[5:] for line in text.splitlines() if line.startswith("data:")] or [text]
    for piece in pieces:
        try:
            found = json.loads(piece)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def read(exchange):
    """What one exchange took and what the model called: (tokens in, tokens out, calls, text)."""
    taken, given, calls, text = 0, 0, {}, ""
    for message in messages_of(exchange["reply"]):
        usage = message.get("usage") or (message.get("response") or {}).get("usage") or {}
        taken = usage.get("prompt_tokens", usage.get("input_tokens", taken))
        given = usage.get("completion_tokens", usage.get("output_tokens", given))
        for choice in message.get("choices") or []:
            delta = choice.get("delta") or choice.get("message") or {}
            text += delta.get("content") or ""
            for call in delta.get("tool_calls") or []:
                name, arguments = calls.get(call.get("index", 0), ("", ""))
                function = call.get("function") or {}
                calls[call.get("index", 0)] = (name + (function.get("name") or ""), arguments + (function.get("arguments") or ""))
        item = message.get("item") or {}
        if message.get("type") == "response.output_item.done" and item.get("type") == "function_call":
            calls[len(calls)] = (item.get("name", ""), item.get("arguments", ""))
    return taken, given, list(calls.values()), text


def malformed(exchange, calls, text):
    """What was wrong with the calls of a reply, by kind."""
    offered = {(tool.get("function") or tool).get("name") for tool in exchange["request"].get("tools") or []}
    for name, arguments in calls:
        if name not in offered:
            yield "unknown tool"
        try:
            if not isinstance(json.loads(arguments or "{}"), dict):
                yield "arguments not an object"
        except ValueError:
            yield "arguments not JSON"
    if offered and not calls and FENCED_CALL.search(text):
        yield "call written as text"


def laid_out(arguments):
    """The arguments in one form, whatever their line breaks and spaces."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except ValueError:
        return arguments


def repeats(exchanges):
    """Of the calls after a failed one, how many there were and how many were the same call again."""
    after, same = 0, 0
    conversation = max((exchange["request"].get("messages") or [] for exchange in exchanges), key=len, default=[])
    last, failed = None, False
    for message in conversation:
        for call in message.get("tool_calls") or []:
            called = (call["function"]["name"], laid_out(call["function"]["arguments"]))
            if failed:
                after += 1
                same += called == last
            last, failed = called, False
        if message.get("role") == "tool":
            failed = bool(FAILED.search(str(message.get("content"))[:400]))
    return after, same
