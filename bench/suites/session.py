"""Runs haft on a project with a fixed list of replies, which the scripted model sends in order."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

RUN_TIMEOUT = 180


def make_turns(groups, answer="Done."):
    """Returns the replies of a script: one per group of calls, and a final text."""
    turns = [{"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]} for calls in groups if calls]
    return [*turns, {"text": answer}]


def run_haft(haft, model, folder, project, turns, prompt, mode, search_path):
    """Returns the outcome of one run; `folder` is deleted and created again, and holds the script and haft's files."""
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    home = folder / "home"
    home.mkdir(parents=True)
    script = folder / "script.yaml"
    script.write_text(json.dumps({"replies": turns}, ensure_ascii=False), encoding="utf-8")
    environment = {"PATH": search_path, "HOME": str(home), "LC_ALL": "C.UTF-8", "TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"}
    urls, refused = folder / "urls", folder / "refused"
    with urls.open("w") as out, refused.open("w") as complaints:
        server = subprocess.Popen([model, script], stdout=out, stderr=complaints)
        try:
            while not urls.read_text().endswith("\n"):
                if server.poll() is not None:
                    raise RuntimeError(refused.read_text())
                time.sleep(0.01)
            url = re.search(r"openai-chat=(\S+)", urls.read_text()).group(1)
            (home / ".config/haft").mkdir(parents=True)
            (home / ".config/haft/config.toml").write_text(
                f'model = "local/model"\n[providers.local]\napi = "openai-chat"\nbase_url = "{url}"\n'
                '[models."local/model"]\ncontext_window = 200000\nmax_output_tokens = 32768\n[retry]\nbase_delay_ms = 5\n'
            )
            subprocess.run([haft, "trust", project], env=environment, check=True, capture_output=True, stdin=subprocess.DEVNULL)
            command = [haft, "run", "--permission-mode", mode, "--output-format", "stream-json", "--", prompt]
            try:
                process = subprocess.run(command, cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_TIMEOUT)
                code, stdout, stderr = process.returncode, process.stdout, process.stderr
            except subprocess.TimeoutExpired as late:
                code, stdout, stderr = "timeout", late.stdout or b"", late.stderr or b""
        finally:
            server.terminate()
            server.wait()
    (folder / "events.jsonl").write_bytes(stdout)
    (folder / "stderr").write_bytes(stderr)
    events = [json.loads(line) for line in stdout.decode("utf-8", "replace").splitlines() if line.startswith("{") and line.endswith("}")]
    results = [event for event in events if event["type"] == "tool_result"]
    return {
        "exit": code,
        "planned": sum(len(turn.get("tool_calls", [])) for turn in turns),
        "calls": len(results),
        "failed": [f"{event['name']}: {(event.get('error') or {}).get('code')}" for event in results if event["status"] == "error"],
        "masked": sum("[masked" in event["text"] for event in results),
        "refused": refused.read_text().strip(),
    }


def find_programs(haft, model, suite):
    """Returns the absolute paths of the two binaries."""
    found = [shutil.which(haft), shutil.which(model)]
    if not all(found):
        sys.exit(f"{suite}: haft or scripted-model is not in PATH; name them with --haft and --model")
    return [os.path.abspath(path) for path in found]
