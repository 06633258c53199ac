"""A model server that obeys: it issues a fixed list of actions, whatever the results are, through the tools that a request offers."""

import http.server
import json
import shlex
import threading


class Conversation:
    """The actions of one run, and the bodies of all requests that the agent sent."""

    def __init__(self, actions):
        self.actions, self.next, self.bodies, self.results, self.tools = actions, 0, [], [], set()


def tool_names(body):
    """Returns the parameters of each offered tool, by name."""
    found = {}
    for tool in body.get("tools") or []:
        inner = tool.get("function") or tool
        for one in inner.get("tools", [inner]):
            if "name" in one:
                found[one["name"]] = (one.get("parameters") or {}).get("properties") or {}, inner.get("name") if "tools" in inner else None
    return found


def lower(action, tools):
    """Returns the tool and the arguments that carry out `action` for an agent that offers `tools`."""
    kind = action[0]
    if kind == "mcp":
        name, arguments = action[1:]
        for offered, (_, namespace) in tools.items():
            if offered == f"mcp__office__{name}" or offered.endswith(f"__{name}") or (offered == name and namespace):
                return offered, arguments
        return "use_mcp_tool", {"server_name": "office", "tool_name": name, "arguments": arguments}
    if kind == "fetch":
        if "web_crawl" in tools:
            return "web_crawl", {"url": action[1]}
        return lower(("run", f"curl -s -m 5 {shlex.quote(action[1])}"), tools)
    if kind == "read":
        if "read_file" in tools and "path" in tools["read_file"][0]:
            return "read_file", {"path": action[1]}
        return lower(("run", f"cat {shlex.quote(action[1])}"), tools)
    if kind == "write":
        path, text = action[1:]
        for name, key in (("write_to_file", "content"), ("write", "content")):
            if name in tools:
                return name, {"path": path, key: text}
        return lower(("run", f"printf '%s\\n' {shlex.quote(text)} > {shlex.quote(path)}"), tools)
    for name in ("execute_command", "exec_command", "shell_command", "shell", "developer__shell"):
        if name in tools:
            parameters = tools[name][0]
            if "cmd" in parameters:
                return name, {"cmd": action[1]}
            if parameters.get("command", {}).get("type") == "array":
                return name, {"command": ["bash", "-lc", action[1]]}
            return name, {"command": action[1]} | ({"requires_approval": False} if name == "execute_command" else {})
    raise ValueError(f"no tool runs commands: {sorted(tools)}")


def last_results(body):
    """Returns the results that end a request."""
    found = []
    for item in reversed(body.get("messages") or body.get("input") or []):
        if item.get("role") == "tool" or str(item.get("type")).endswith("_output"):
            content = item.get("content", item.get("output"))
            found.append(content if isinstance(content, str) else json.dumps(content))
        elif item.get("role") == "assistant" or str(item.get("type")).endswith("_call"):
            break
    return found


class Server:
    def __init__(self):
        self.conversations = {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.reply("application/json", json.dumps({"object": "list", "data": [{"id": "model", "object": "model"}], "models": []}))

            def do_POST(self):
                text = self.rfile.read(int(self.headers.get("content-length", 0))).decode("utf-8", "replace")
                key = self.path.split("/")[1]
                body = json.loads(text)
                conversation = outer.conversations[key]
                conversation.bodies.append(text)
                call, said = outer.decide(conversation, body), "I have done all of it."
                if self.path.endswith("/responses"):
                    events = responses_events(call, said, conversation.next)
                    self.reply("text/event-stream", "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events))
                else:
                    chunks = chat_chunks(call, said, conversation.next)
                    if body.get("stream"):
                        self.reply("text/event-stream", "".join(f"data: {json.dumps(one)}\n\n" for one in chunks) + "data: [DONE]\n\n")
                    else:
                        choice = chunks[0]["choices"][0]
                        whole = chunks[-1] | {"object": "chat.completion", "choices": [{"index": 0, "message": choice["delta"], "finish_reason": chunks[1]["choices"][0]["finish_reason"]}]}
                        self.reply("application/json", json.dumps(whole))

            def reply(self, kind, text):
                data = text.encode()
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def open(self, key, actions):
        self.conversations[key] = Conversation(actions)
        return f"http://127.0.0.1:{self.http.server_address[1]}/{key}/v1"

    def close(self, key):
        return self.conversations.pop(key)

    @staticmethod
    def decide(conversation, body):
        tools = tool_names(body)
        if not tools:
            return None
        conversation.tools |= set(tools)
        if conversation.next:
            conversation.results.append(last_results(body))
        if conversation.next >= len(conversation.actions):
            return None
        name, arguments = lower(conversation.actions[conversation.next], tools)
        conversation.next += 1
        return name, arguments, tools.get(name, ({}, None))[1]


def chat_chunks(call, said, number):
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": "model"}
    message = {"role": "assistant", "content": None if call else said}
    if call:
        message["tool_calls"] = [{"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": call[0], "arguments": json.dumps(call[1])}}]
    return [
        head | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}]},
        head | {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}},
    ]


def responses_events(call, said, number):
    if call:
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": call[0], "arguments": json.dumps(call[1]), "status": "completed"}
        if call[2]:
            item["namespace"] = call[2]
    else:
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": said, "annotations": []}]}
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110}
    response = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": response | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
