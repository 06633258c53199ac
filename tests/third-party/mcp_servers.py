"""The haft binary with the reference MCP servers, which nobody here wrote: each is called for real.

usage: mcp_servers.py HAFT SCRIPTED_MODEL NODE_MODULES [VENV]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

from haft_run import Checks, Place


def scripted(binary, folder, calls):
    """Starts a scripted model that makes these calls one after the other; gives the process and its address."""
    turns = [{"tool_calls": [{"name": "use_mcp_tool", "arguments": dict(zip(("server_name", "tool_name", "arguments"), call))}]} for call in calls]
    # JSON is YAML.
    (folder / "script.yaml").write_text(json.dumps({"turns": [*turns, {"text": "Done."}]}))
    urls = folder / "urls"
    server = subprocess.Popen([binary, folder / "script.yaml"], stdout=urls.open("w"), stderr=subprocess.DEVNULL)
    for _ in range(100):
        if urls.read_text().endswith("\n"):
            break
        time.sleep(0.1)
    base = next(word.split("=", 1)[1] for word in urls.read_text().split() if word.startswith("anthropic="))
    return server, base


def servers(modules, venv, folder):
    """The servers that can be had: their programs, and calls with a word that must be in the answer."""
    package = lambda name: ["node", str(modules / "@modelcontextprotocol" / name / "dist" / "index.js")]
    found = {
        "everything": (package("server-everything"), [("echo", {"message": "Grüße"}, "Grüße"), ("get-sum", {"a": 40, "b": 2}, "42")]),
        "filesystem": (
            [*package("server-filesystem"), str(folder)],
            [("read_text_file", {"path": str(folder / "note.txt")}, "4711"), ("list_directory", {"path": str(folder)}, "note.txt")],
        ),
        "memory": (
            package("server-memory"),
            [
                ("create_entities", {"entities": [{"name": "haft", "entityType": "program", "observations": ["an agent"]}]}, "haft"),
                ("search_nodes", {"query": "haft"}, "an agent"),
            ],
        ),
    }
    if venv:
        found["git"] = ([str(venv / "bin" / "mcp-server-git"), "--repository", str(folder)], [("git_status", {"repo_path": str(folder)}, "note.txt")])
        found["time"] = ([str(venv / "bin" / "mcp-server-time"), "--local-timezone", "UTC"], [("get_current_time", {"timezone": "UTC"}, "UTC")])
    there = lambda command: pathlib.Path(command[1] if command[0] == "node" else command[0]).exists()
    return {name: server for name, server in found.items() if there(server[0])}


def main():
    haft, model, modules = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    venv = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="haft-mcp-") as name:
        folder = pathlib.Path(name).resolve()
        (folder / "note.txt").write_text("The secret number is 4711.\n")
        subprocess.run(["git", "init", "-q", folder], check=True)
        found = servers(modules, venv, folder)
        more = "".join(
            f"[mcp_servers.{name}]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\ncwd = {json.dumps(str(folder))}\nstartup_timeout = 120\n"
            + (f"env = {{ MEMORY_FILE_PATH = {json.dumps(str(folder / 'memory.json'))} }}\n" if name == "memory" else "")
            for name, (command, _) in found.items()
        )
        for name, (_, calls) in found.items():
            with tempfile.TemporaryDirectory(prefix="haft-script-") as work:
                server, base = scripted(model, pathlib.Path(work), [(name, tool, arguments) for tool, arguments, _ in calls])
                try:
                    with Place(haft, "anthropic", base, more=more) as place:
                        ran = place.run("use the server", seconds=200)
                finally:
                    server.terminate()
                    server.wait(timeout=20)
            results = ran.of("tool_result")
            for index, (tool, _, word) in enumerate(calls):
                result = results[index] if index < len(results) else {}
                held = ran.code == 0 and result.get("status") == "success" and word in result.get("text", "")
                checks.check(f"{name}: {tool}", held, f"{result} {ran}")
    sys.exit(1 if checks.failed else 0)


main()
