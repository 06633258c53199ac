"""Drives `haft acp` with clients that nobody here wrote.

usage: acp_clients.py HAFT SCRIPTED_MODEL NODE NODE_MODULES PYTHON EXAMPLES

NODE is Node 22; NODE_MODULES has `acpx` and `@agentclientprotocol/sdk`; PYTHON has `acplint` and `agent-client-protocol`, whose example
client lies in EXAMPLES. Ends with 1 if one of them fails.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
haft, model, node, modules, python, examples = sys.argv[1:]
failed = False


def expect(holds, what, seen=""):
    global failed
    failed |= not holds
    print(f"{'ok  ' if holds else 'FAIL'} {what}" + ("" if holds else f": {seen}"), flush=True)


def run(command, project, home, seconds=120, **more):
    path = f"{pathlib.Path(node).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(home), "HAFT_HOME": str(home)}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=seconds, **more)


def place(root, name, base_url):
    home, project = root / name / "home", root / name / "project"
    home.mkdir(parents=True)
    project.mkdir()
    (home / "config.toml").write_text(
        f'model = "mock/test"\n[providers.mock]\napi = "anthropic"\nbase_url = "{base_url}"\n'
        '[models."mock/test"]\ncontext_window = 200000\nmax_output_tokens = 8192\n'
    )
    subprocess.run([haft, "trust"], cwd=project, env={"PATH": os.environ["PATH"], "HAFT_HOME": str(home)}, check=True, capture_output=True)
    return project, home


def acpx(root, base_url):
    project, home = place(root, "acpx", base_url)
    program = [node, f"{modules}/.bin/acpx", "--agent", f"{haft} acp", "--format", "json"]
    ran = run([*program, "--approve-all", "exec", "Write a file"], project, home)
    written = project / "hello.txt"
    expect(ran.returncode == 0 and written.is_file(), "acpx: a task is carried out", ran.stdout[-500:] + ran.stderr[-500:])
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    expect(any(line.get("result", {}).get("stopReason") == "end_turn" for line in lines), "acpx: and ends", ran.stdout[-500:])
    written.unlink(missing_ok=True)
    ran = run([*program, "--deny-all", "exec", "Write a file"], project, home)
    expect(not written.exists(), "acpx: what is denied is not done", ran.stdout[-500:])


def typescript(root, base_url):
    project, home = place(root, "typescript", base_url)
    # Modules are found from where the program lies.
    client = pathlib.Path(modules).parent / "acp_client.mjs"
    shutil.copy(HERE / "acp_client.mjs", client)
    ran = run([node, client, haft, str(project)], project, home)
    print("\n".join(f"{line[:5]}TypeScript SDK: {line[5:]}" for line in ran.stdout.splitlines()))
    expect(ran.returncode == 0 and "ok" in ran.stdout, "TypeScript SDK: all of it", ran.stderr[-800:])


def example(root, base_url):
    project, home = place(root, "python", base_url)
    said = "Hello\nRun a command\n"
    ran = run([python, f"{examples}/client.py", haft, "acp"], project, home, input=said)
    expect(ran.returncode == 0 and "Agent: Hello from" in ran.stdout and "Agent: Done." in ran.stdout, "Python SDK's example client", ran.stdout[-500:] + ran.stderr[-800:])


def linter(root, base_url):
    project, home = place(root, "acplint", base_url)
    report = root / "acplint.json"
    lint = [python, "-m", "acplint.cli", "--agent", haft, "--agent-args", "acp", "--cwd", str(project), "--output", "json", "--output-file", str(report)]
    ran = run(lint, project, home, seconds=200)
    if not report.is_file():
        return expect(False, "acplint", ran.stdout[-500:] + ran.stderr[-800:])
    explained = json.loads((HERE / "acplint.json").read_text())
    tests = json.loads(report.read_text())
    tests = tests.get("results") or tests.get("tests")
    bad = {one.get("name") or one.get("test_name"): one.get("message") for one in tests if str(one.get("status")).lower() in ("fail", "error")}
    new = {name: why for name, why in bad.items() if name not in explained}
    expect(len(tests) > 20 and not new, f"acplint: {len(tests) - len(bad)} of {len(tests)} pass, the others are explained", new)
    expect(set(explained) <= set(bad), "acplint: every explanation is still needed", sorted(set(explained) - set(bad)))


def main():
    with tempfile.TemporaryDirectory(prefix="haft-acp-") as folder:
        server = subprocess.Popen([model, str(HERE / "acp.yaml")], stdout=subprocess.PIPE, text=True)
        try:
            served = dict(part.split("=", 1) for part in server.stdout.readline().split())
            for client in (acpx, typescript, example, linter):
                client(pathlib.Path(folder), served["anthropic"])
        finally:
            server.kill()
    return int(failed)


sys.exit(main())
