"""A model that takes anything: so many tool calls, then "Done.", over Chat Completions, Responses and Gemini, streamed.

The scripted model is as strict as the documentation; real agents send fields that are in none. What passes through a proxy
unchanged is not a question of what the fields mean.
"""

import gzip
import http.server
import json
import os
import threading

# Providers read from the cache in steps, from this many tokens on.
STEP, LEAST = 128, 1024


class LenientModel:
    def __init__(self, tool, arguments, turns, faults=False):
        self.faults, self.asked, self.has_cut = faults, 0, False
        self.tool, self.arguments, self.left, self.lock = tool, arguments, turns, threading.Lock()
        self.seen = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next_call(self, body):
        """The arguments of the next call; none when the tool is not offered or all calls were made."""
        if f'"{self.tool}"' not in json.dumps(body.get("tools") or []):
            return None
        with self.lock:
            if self.left == 0:
                return None
            self.left -= 1
            return self.arguments(self.left)


    def next_fault(self):
        """What goes wrong with this request: every fifth is refused, and one near the end is cut in the middle of its reply."""
        with self.lock:
            self.asked += 1
            if self.faults and self.left <= 2 and not self.has_cut:
                self.has_cut = True
                return "cut"
            return "429" if self.faults and self.asked % 5 == 2 else None

    def usage(self, body):
        """The tokens of a request, four bytes each, and how many of them a prefix cache holds from the requests before."""
        order = ("tools", "system", "instructions", "systemInstruction", "messages", "input", "contents")
        text = json.dumps([body.get(name) for name in order])
        with self.lock:
            shared = max((len(os.path.commonprefix([text, before])) for before in self.seen), default=0) // 4
            self.seen.append(text)
        return len(text) // 4, shared // STEP * STEP if shared >= LEAST else 0


def handler(model):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.answer("application/json", json.dumps({"object": "list", "data": [{"id": "mock", "object": "model"}], "models": []}))

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            self.fault = model.next_fault()
            if self.fault == "429":
                error = {"error": {"message": "slow down", "type": "rate_limit_error", "code": 429, "status": "RESOURCE_EXHAUSTED"}}
                return self.answer("application/json", json.dumps(error), 429, {"retry-after": "1"})
            if self.fault == "cut":
                return self.cut()
            call, (taken, cached) = model.next_call(body), model.usage(body)
            if "/chat/completions" in self.path:
                events = chat(model.tool, call, taken, cached)
            elif "/responses" in self.path:
                events = responses(model.tool, call, taken, cached)
            elif "streamGenerateContent" in self.path:
                events = gemini(model.tool, call, taken, cached)
            else:
                return self.answer("application/json", json.dumps(gemini(model.tool, None, taken, cached)[0] | {"totalTokens": 10}))
            if "/chat/completions" in self.path and not body.get("stream"):
                whole = {"id": "1", "object": "chat.completion", "model": "mock", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}]}
                return self.answer("application/json", json.dumps(whole | {"usage": chat_usage(taken, cached)}))
            named = lambda event: f"event: {event['type']}\n" if "/responses" in self.path else ""
            text = "".join(f"{named(event)}data: {json.dumps(event)}\n\n" for event in events)
            self.answer("text/event-stream", text + ("data: [DONE]\n\n" if "/chat/completions" in self.path else ""))

        def cut(self):
            """The beginning of a stream, and then nothing."""
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", "5000")
            self.end_headers()
            self.wfile.write(b'data: {"id":"1","object":"chat.com')
            self.close_connection = True

        def answer(self, kind, text, status=200, headers=None):
            data = text.encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            if model.faults and "gzip" in self.headers.get("accept-encoding", ""):
                data = gzip.compress(data, mtime=0)
                self.send_header("content-encoding", "gzip")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def chat_usage(taken, cached):
    return {"prompt_tokens": taken, "completion_tokens": 1, "total_tokens": taken + 1, "prompt_tokens_details": {"cached_tokens": cached}}


def chat(tool, call, taken, cached):
    delta = {"role": "assistant", "content": "Done."}
    if call is not None:
        function = {"name": tool, "arguments": json.dumps(call)}
        delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": f"call_{abs(hash(str(call)))}", "type": "function", "function": function}]}
    base = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "mock"}
    end = "stop" if call is None else "tool_calls"
    return [
        base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        base | {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
        base | {"choices": [], "usage": chat_usage(taken, cached)},
    ]


def responses(tool, call, taken, cached):
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}
    if call is not None:
        number = abs(hash(str(call)))
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": tool, "arguments": json.dumps(call), "status": "completed"}
    usage = {"input_tokens": taken, "output_tokens": 1, "total_tokens": taken + 1, "input_tokens_details": {"cached_tokens": cached}, "output_tokens_details": {"reasoning_tokens": 0}}
    done = {"id": "resp_1", "object": "response", "status": "completed", "model": "mock", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": done | {"status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]


def gemini(tool, call, taken, cached):
    part = {"text": "Done."} if call is None else {"functionCall": {"name": tool, "args": call}}
    usage = {"promptTokenCount": taken, "cachedContentTokenCount": cached, "candidatesTokenCount": 1, "totalTokenCount": taken + 1}
    return [{"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}], "usageMetadata": usage, "modelVersion": "mock"}]
