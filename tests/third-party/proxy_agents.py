#!/usr/bin/env python3
"""Real agents through `haft proxy`: what they send and get must be the same bytes on both sides of it.

    proxy_agents.py HAFT BIN TURNS AGENT…

BIN is a folder with the agents' programs (codex, opencode, gemini, qwen). Each agent runs TURNS tool turns against a
model that takes anything, with one recorder between it and the proxy and another between the proxy and the model. Prints one row an agent and exits
with 1 when a body, a reply, a status or a header that should be equal is not.
"""

import contextlib
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
                connection.endheaders(body)
                reply = connection.getresponse()
                exchange = {
                    "method": self.command, "path": self.path, "headers": headers_of(self.headers), "body": body,
                    "status": reply.status, "reply_headers": headers_of(reply.headers), "reply": b"",
                }
                recorder.exchanges.append(exchange)
                self.send_response_only(reply.status)
                for name, value in reply.headers.items():
                    if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                        self.send_header(name, value)
                self.send_header("connection", "close")
                self.end_headers()
                while chunk := reply.read1(65536):
                    exchange["reply"] += chunk
                    self.wfile.write(chunk)
                    self.wfile.flush()
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


def qwen(url, home):
    (home / ".qwen").mkdir()
    (home / ".qwen" / "settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": "openai"}}}))
    return ["qwen", "--yolo", "-p", "go"], {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "mock"}


# How an agent is started, the tool that runs a command, and the arguments of a call of it.
AGENTS = {
    "codex": (codex, "exec_command", lambda n: {"cmd": f"echo {n}"}),
    "opencode": (opencode, "bash", lambda n: {"command": f"echo {n}", "description": "count"}),
    "gemini": (gemini, "run_shell_command", lambda n: {"command": f"echo {n}", "description": "count"}),
    "qwen": (qwen, "run_shell_command", lambda n: {"command": f"echo {n}", "description": "count", "is_background": False}),
}


@contextlib.contextmanager
def started(command, pattern, **more):
    """A program in the background, and the port it says it listens on."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    lines, rest = [], None
    try:
        for line in process.stdout:
            lines.append(line)
            if found := re.search(pattern, line):
                # It must not wait for somebody to read what it says from here on.
                rest = threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True)
                rest.start()
                yield int(found[1]), lines
                break
        else:
            sys.exit(f"{command[0]} ended: {''.join(lines)}")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        if rest:
            rest.join()


def differences(inner, outer):
    """What is not equal before and after the proxy."""
    if len(inner) != len(outer):
        yield f"{len(outer)} requests before the proxy, {len(inner)} after it"
    # Requests at the same time may be noted in another order.
    key = lambda one: (one["path"], one["body"], one["reply"])
    for after, before in zip(sorted(inner, key=key), sorted(outer, key=key)):
        for what in ("method", "path", "headers", "body", "status", "reply_headers", "reply"):
            if after[what] != before[what]:
                yield f"{before['method']} {before['path']}: {what} differ: {str(before[what])[:300]} / {str(after[what])[:300]}"


def one(name, haft, programs, turns):
    start, tool, arguments = AGENTS[name]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        home, work, haft_home = folder / "home", folder / "work", folder / "haft"
        for each in (home, work, haft_home):
            each.mkdir()
        path = f"{programs}:{os.environ['PATH']}"
        inner = Recorder(LenientModel(tool, arguments, turns).port)
        proxy = [haft, "proxy", "--port", "0", "--upstream", f"http://127.0.0.1:{inner.port}"]
        with started(proxy, r"http://127\.0\.0\.1:(\d+)", env={"PATH": path, "HAFT_HOME": str(haft_home)}) as (proxy_port, said):
            outer = Recorder(proxy_port)
            command, environment = start(f"http://127.0.0.1:{outer.port}", home)
            base = {"PATH": path, "HOME": str(home), "OPENAI_API_KEY": "key", "TERM": "dumb", "XDG_DATA_HOME": str(home / "data")}
            ran = subprocess.run(
                command, cwd=work, env=base | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400
            )
            time.sleep(1)
        said = [line for line in said if "append-only" in line]
    called = sum(b'"name":"' + tool.encode() in one["reply"].replace(b": ", b":") for one in outer.exchanges)
    wrong = list(differences(inner.exchanges, outer.exchanges))
    if called < turns:
        offered = re.findall(r'"name": ?"([a-zA-Z_]+)"', "".join(one["body"].decode("utf-8", "replace") for one in outer.exchanges[:2]))
        wrong.append(f"only {called} tool turns; exit {ran.returncode}; tools offered {sorted(set(offered))}\n{ran.stdout[-1500:]}")
    bodies = sum(len(one["body"]) for one in outer.exchanges)
    print(f"| {name} | {len(outer.exchanges)} | {called} | {bodies:,} | {'equal' if not wrong else 'DIFFERENT'} | {said[-1].strip() if said else '–'} |", flush=True)
    for line in wrong[:10]:
        print("   ", line)
    return not wrong


def main():
    haft, programs, turns, *agents = sys.argv[1:]
    print("| agent | requests | tool turns | bytes sent | both sides | what the proxy says |\n| --- | --- | --- | --- | --- | --- |")
    fine = [one(name, haft, programs, int(turns)) for name in agents]
    sys.exit(0 if all(fine) else 1)


main()
