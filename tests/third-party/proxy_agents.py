#!/usr/bin/env python3
"""Real agents through `haft proxy`: what they send and get must be the same bytes on both sides of it.

    proxy_agents.py HAFT BIN TURNS [--faults | --save] AGENT…

BIN is a folder with the agents' programs (codex, goose, opencode, gemini, qwen). Each agent runs TURNS tool turns against a
model that takes anything, with one recorder between it and the proxy and another between the proxy and the model. Prints one row an agent and exits
with 1 when a body, a reply, a status or a header that should be equal is not.

With --faults the model compresses its replies, refuses every fifth request with 429 and cuts one near the end in the middle of
its reply; the proxy is killed and started again while the agent works; and a body of 50 MB goes through at the end.

With --save the proxy rewrites requests. Each tool turn prints about 2,000 tokens, and the last one opens a file with a result that was left out.
Every agent must run to its end, every call must have its result in every request, and the text must come back. Prints what the requests cost as the
agent sent them and as they arrived, by the longest common prefix, with four bytes a token: at Anthropic's prices and at OpenAI's.
"""

import gzip
import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from lenient_model import LenientModel

# Of one connection, not of the message; and the name of the server that was called.
OWN_HEADERS = {"host", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection", "content-length", "date"}


def headers_of(message):
    return sorted((name.lower(), value) for name, value in message.items() if name.lower() not in OWN_HEADERS)


class Recorder:
    """Passes requests on and keeps both directions."""

    def __init__(self, upstream):
        self.exchanges = []
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def pass_on(self):
                if self.headers.get("transfer-encoding", "").lower() == "chunked":
                    body = b""
                    while size := int(self.rfile.readline().split(b";")[0], 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    body = self.rfile.read(int(self.headers.get("content-length", 0)))
                connection = http.client.HTTPConnection("127.0.0.1", upstream, timeout=120)
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                        connection.putheader(name, value)
                connection.putheader("content-length", str(len(body)))
                try:
                    connection.endheaders(body)
                    reply = connection.getresponse()
                except OSError:
                    # Whoever is behind is away for the moment: the agent must see that, and it is no exchange.
                    self.close_connection = True
                    return
                exchange = {
                    "method": self.command, "path": self.path, "headers": headers_of(self.headers), "body": body,
                    "status": reply.status, "reply_headers": headers_of(reply.headers), "reply": b"",
                }
                recorder.exchanges.append(exchange)
                self.send_response_only(reply.status)
                for name, value in reply.headers.items():
                    # A length goes along, so that a reply that is cut stays one.
                    if name.lower() not in ("connection", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("connection", "close")
                self.end_headers()
                try:
                    while chunk := reply.read1(65536):
                        exchange["reply"] += chunk
                        self.wfile.write(chunk)
                        self.wfile.flush()
                except (http.client.IncompleteRead, OSError):
                    exchange["broken"] = True
                self.close_connection = True

            do_GET = do_POST = do_HEAD = do_OPTIONS = pass_on

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def codex(url, home):
    provider = f'model_providers.mock={{name="mock",base_url="{url}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'
    options = ["-c", provider, "-c", 'model_provider="mock"', "-c", 'model="gpt-5"']
    return ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *options, "go"], {"CODEX_HOME": str(home)}


def opencode(url, home):
    model = {"name": "mock", "limit": {"context": 200000, "output": 8000}}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{url}/v1", "apiKey": "key"}, "models": {"mock": model}}
    config = {"provider": {"mock": provider}, "model": "mock/mock", "small_model": "mock/mock", "autoupdate": False, "permission": "allow"}
    (home / "opencode.json").write_text(json.dumps(config))
    return ["opencode", "run", "go"], {"OPENCODE_CONFIG": str(home / "opencode.json"), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def gemini(url, home):
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    return ["gemini", "--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p", "go"], {"GEMINI_API_KEY": "key", "GOOGLE_GEMINI_BASE_URL": url}


def goose(url, _):
    start = ["goose", "run", "--no-profile", "--with-builtin", "developer", "--max-turns", "100", "-t", "go"]
    return start, {"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "gpt-4o", "OPENAI_HOST": url, "GOOSE_MODE": "auto", "GOOSE_DISABLE_KEYRING": "1"}


def qwen(url, home):
    (home / ".qwen").mkdir()
    (home / ".qwen" / "settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": "openai"}}}))
    return ["qwen", "--yolo", "-p", "go"], {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "mock"}


# How an agent is started, the tool that runs a command, and the arguments of a call of it.
AGENTS = {
    "codex": (codex, "exec_command", lambda n: {"cmd": f"echo {n}"}),
    "opencode": (opencode, "bash", lambda n: {"command": f"echo {n}", "description": "count"}),
    "gemini": (gemini, "run_shell_command", lambda n: {"command": f"echo {n}", "description": "count"}),
    "goose": (goose, "shell", lambda n: {"command": f"echo {n}"}),
    "qwen": (qwen, "run_shell_command", lambda n: {"command": f"echo {n}", "description": "count", "is_background": False}),
}


# The program that prints much, as an argument of each agent's tool.
def printing(arguments, command):
    return {name: command if value == "echo 7" else value for name, value in arguments(7).items()}


class SavingModel(LenientModel):
    """Calls for long outputs, and in the last call for a text that was left out."""

    def __init__(self, tool, arguments, turns):
        super().__init__(tool, arguments, turns)
        self.plain, self.opened = arguments, None

    def next_call(self, body):
        text = json.dumps(body)
        self.arguments = lambda n: printing(self.plain, f"seq {n * 2000} {n * 2000 + 1200}")
        if self.left == 1 and (found := re.search(r"Its full text is in ([^\]]+)]", text)):
            self.opened = found[1]
            self.arguments = lambda n: printing(self.plain, f"head -c 300 {found[1]}")
        return super().next_call(body)


def unpaired(body):
    """The calls of a request without a result, and results without a call before them."""
    calls, wrong = [], []
    for message in body.get("messages") or body.get("input") or body.get("contents") or []:
        if not isinstance(message, dict):
            continue
        parts = [message, *(message.get("tool_calls") or []), *(message.get("parts") or [])]
        for part in parts:
            call, answer = part.get("functionCall"), part.get("functionResponse")
            if call or part.get("type") in ("function", "function_call", "custom_tool_call"):
                calls.append((call or {}).get("name") or part.get("call_id") or part.get("id"))
            elif answer or message.get("role") == "tool" or str(part.get("type")).endswith("_call_output"):
                name = (answer or {}).get("name") or part.get("call_id") or part.get("tool_call_id")
                calls.remove(name) if name in calls else wrong.append(name)
    return calls + wrong


def input_cost(bodies, read, write):
    order = ("tools", "system", "instructions", "systemInstruction", "messages", "input", "contents")
    seen, cost = [], 0
    for body in bodies:
        text = json.dumps([json.loads(body).get(name) for name in order])
        shared = max((len(os.path.commonprefix([text, before])) for before in seen), default=0)
        seen = [*seen[-20:], text]
        cost += (read * shared + write * (len(text) - shared)) / 4
    return cost


def save_one(name, haft, programs, turns):
    start, tool, arguments = AGENTS[name]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        home, work, haft_home = folder / "home", folder / "work", folder / "haft"
        for each in (home, work, haft_home, work / "texts"):
            each.mkdir()
        spill = "" if name in ("codex", "goose") else f'spill_dir = "{work}/texts"\n'
        (haft_home / "config.toml").write_text(f'[proxy.save]\nagents = ["{name}"]\n{spill}')
        path = f"{programs}:{os.environ['PATH']}"
        model = SavingModel(tool, arguments, turns)
        inner = Recorder(model.port)
        proxy = Proxy([haft, "proxy", "--save", "--upstream", f"http://127.0.0.1:{inner.port}"], {"PATH": path, "HAFT_HOME": str(haft_home)})
        outer = Recorder(proxy.port)
        command, environment = start(f"http://127.0.0.1:{outer.port}", home)
        base = {"PATH": path, "HOME": str(home), "OPENAI_API_KEY": "key", "TERM": "dumb", "XDG_DATA_HOME": str(home / "data")}
        output = folder / "output"
        with output.open("w") as file:
            agent = subprocess.Popen(command, cwd=work, env=base | environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
            try:
                agent.wait(550)
            except subprocess.TimeoutExpired:
                agent.kill()
        time.sleep(1)
        proxy.end()
        models = ("/chat/completions", "/responses", "GenerateContent", "/messages")
        bodies = lambda recorder: [one["body"] for one in recorder.exchanges if one["path"].split("?")[0].endswith(models)]
        received, sent = bodies(outer), bodies(inner)
        wrong = [f"request {number}: {unpaired(json.loads(body))}" for number, body in enumerate(sent) if unpaired(json.loads(body))]
        if agent.returncode != 0:
            wrong.append(f"exit {agent.returncode}: {output.read_text()[-800:]}")
        opened = bool(model.opened) and pathlib.Path(model.opened).exists()
        text = pathlib.Path(model.opened).read_text()[:100] if opened else ""
        opened = opened and json.dumps(text)[1:-1].encode() in sent[-1]
        if not opened:
            wrong.append(f"the text of {model.opened} did not come back")
        changed = sum(before != after for before, after in zip(received, sent))
        price = lambda read, write: f"{100 * (input_cost(sent, read, write) / input_cost(received, read, write) - 1):+.1f} %"
        print("|", " | ".join(map(str, [name, len(sent), changed, price(0.1, 1.25), price(0.1, 1.0), "opened" if opened else "no", "fine" if not wrong else "WRONG"])), "|", flush=True)
        for line in wrong[:10]:
            print("   ", line)
        for line in proxy.lines[-12:] if wrong else proxy.lines[-2:]:
            print("   ", line.rstrip())
    return not wrong


class Proxy:
    """`haft proxy` in the background, with what it says."""

    def __init__(self, command, env):
        self.command, self.env, self.lines, self.port = command, env, [], 0
        self.start()

    def start(self):
        command = [*self.command, "--port", str(self.port)]
        self.process = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            sys.exit(f"{command[0]} ended: {''.join(self.lines)}")
        # It must not wait for somebody to read what it says from here on.
        self.reader = threading.Thread(target=lambda output=self.process.stdout: self.lines.extend(output), daemon=True)
        self.reader.start()

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        self.process.wait()
        self.reader.join()


def kill_in_the_middle(proxy, outer, turns):
    """Kills the proxy when half of the turns are through, and starts it again on the same port."""
    deadline = time.monotonic() + 120
    while len(outer.exchanges) < turns // 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    proxy.end(signal.SIGKILL)
    time.sleep(0.5)
    proxy.start()


def passes_large_body(port, inner):
    """Whether 50 MB arrive behind the proxy as they were sent."""
    body = json.dumps({"model": "mock", "messages": [{"role": "user", "content": "x" * 50_000_000}]}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    connection.getresponse().read()
    return any(one["body"] == body for one in inner.exchanges)


COMPARED = ("method", "path", "headers", "body", "status", "reply_headers", "reply")


def differences(inner, outer, killed):
    """What is not equal before and after the proxy. What was on its way when it was killed is behind it alone."""
    if not 0 <= len(inner) - len(outer) <= killed:
        yield f"{len(outer)} requests before the proxy, {len(inner)} after it"
    if killed:
        left = list(inner)
        for before in outer:
            same = [one for one in left if all(one[what] == before[what] for what in COMPARED)]
            if same:
                left.remove(same[0])
            elif not before.get("broken"):
                yield f"{before['method']} {before['path']}: not the same behind the proxy"
        return
    # Requests at the same time may be noted in another order.
    key = lambda one: (one["path"], one["body"], one["reply"])
    for after, before in zip(sorted(inner, key=key), sorted(outer, key=key)):
        for what in COMPARED:
            if after[what] != before[what]:
                yield f"{before['method']} {before['path']}: {what} differ: {str(before[what])[:300]} / {str(after[what])[:300]}"


def one(name, haft, programs, turns, faults):
    start, tool, arguments = AGENTS[name]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        home, work, haft_home = folder / "home", folder / "work", folder / "haft"
        for each in (home, work, haft_home):
            each.mkdir()
        path = f"{programs}:{os.environ['PATH']}"
        model = LenientModel(tool, arguments, turns, faults)
        inner = Recorder(model.port)
        command = [haft, "proxy", "--upstream", f"http://127.0.0.1:{inner.port}"]
        proxy = Proxy(command, {"PATH": path, "HAFT_HOME": str(haft_home)})
        outer = Recorder(proxy.port)
        command, environment = start(f"http://127.0.0.1:{outer.port}", home)
        base = {"PATH": path, "HOME": str(home), "OPENAI_API_KEY": "key", "TERM": "dumb", "XDG_DATA_HOME": str(home / "data")}
        killer = threading.Thread(target=kill_in_the_middle, args=(proxy, outer, turns))
        if faults:
            killer.start()
        output = folder / "output"
        with output.open("w") as file:
            agent = subprocess.Popen(command, cwd=work, env=base | environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
            try:
                agent.wait(400)
            except subprocess.TimeoutExpired:
                agent.kill()
        if faults:
            killer.join()
        exchanges, wrong = list(outer.exchanges), list(differences(list(inner.exchanges), outer.exchanges, int(faults)))
        if faults:
            model.faults = False
            if not passes_large_body(proxy.port, inner):
                wrong.append("50 MB did not arrive as they were sent")
        time.sleep(1)
        proxy.end()
        said = [line for line in proxy.lines if "append-only" in line]
        called = sum(one["status"] == 200 and (b'"name":"' + tool.encode()) in plain(one).replace(b": ", b":") for one in exchanges)
        if called < turns and not faults:
            offered = re.findall(r'"name": ?"([a-zA-Z_]+)"', "".join(one["body"].decode("utf-8", "replace") for one in exchanges[:2]))
            wrong.append(f"only {called} tool turns; exit {agent.returncode}; tools offered {sorted(set(offered))}\n{output.read_text()[-1500:]}")
    bodies = sum(len(one["body"]) for one in exchanges)
    refused, cut = (sum(test(one) for one in exchanges) for test in (lambda one: one["status"] == 429, lambda one: is_cut(one)))
    row = [name, len(exchanges), called, f"{bodies:,}", *([refused, cut] if faults else []), "equal" if not wrong else "DIFFERENT"]
    print("|", " | ".join(map(str, row + ([] if faults else [said[-1].strip() if said else "–"]))), "|", flush=True)
    for line in wrong[:10]:
        print("   ", line)
    return not wrong


def plain(exchange):
    """The reply without its compression."""
    packed = ("content-encoding", "gzip") in exchange["reply_headers"]
    return gzip.decompress(exchange["reply"]) if packed else exchange["reply"]


def is_cut(exchange):
    return exchange["status"] == 200 and exchange["reply"].endswith(b"chat.com")


def main():
    haft, programs, turns, *agents = sys.argv[1:]
    if "--save" in agents:
        columns = ["agent", "requests", "rewritten", "cost at Anthropic's prices", "at OpenAI's", "text left out", "result"]
        print("|", " | ".join(columns), "|\n|" + " --- |" * len(columns))
        fine = [save_one(name, haft, programs, int(turns)) for name in agents if name != "--save"]
        sys.exit(0 if all(fine) else 1)
    faults = "--faults" in agents
    columns = ["agent", "requests", "tool turns", "bytes sent", *(["429", "cut"] if faults else []), "both sides", *([] if faults else ["what the proxy says"])]
    print("|", " | ".join(columns), "|\n|" + " --- |" * len(columns))
    fine = [one(name, haft, programs, int(turns), faults) for name in agents if name != "--faults"]
    sys.exit(0 if all(fine) else 1)


main()
