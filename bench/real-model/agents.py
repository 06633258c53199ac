"""How each agent is started on a task. An agent is a function from a run to how it ended."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

TURNS = 25
WINDOW = 32768
PROFILES = ("small", "full")
READING = ["read_file", "list_files", "search_files", "execute_command"]

HAFT_CONFIG = """
model = "local/model"
[providers.local]
api = "openai-chat"
base_url = "{url}"
[models."local/model"]
context_window = {window}
max_output_tokens = 2048
{more}
"""


def haft(run, binary, settings):
    """`settings` are a tool protocol, a profile, and `edit=TOOL`, any of them."""
    home = run.folder / "home"
    home.mkdir(exist_ok=True)
    edits = [one.removeprefix("edit=") for one in settings if one.startswith("edit=")]
    more = "".join(f'{"profile" if one in PROFILES else "tool_protocol"} = "{one}"\n' for one in settings if not one.startswith("edit="))
    more += f"[tools]\noffer = {json.dumps(READING + edits)}\n" if edits else ""
    (home / "config.toml").write_text(HAFT_CONFIG.format(url=run.url, window=WINDOW, more=more))
    if run.task.trusted:
        start(run, [binary, "trust", str(run.workspace)], {"HAFT_HOME": str(home)})
    command = [binary, "run", "--output-format", "stream-json", "--permission-mode", "auto", "--max-turns", str(TURNS)]
    command += ["--max-wall-time", str(run.seconds)] + (["--continue"] if run.is_second_try else []) + ["--", run.prompt]
    ended = start(run, command, {"HAFT_HOME": str(home)})
    results = [event for event in lines_of(ended["stdout"]) if event.get("type") == "result"]
    result = results[-1] if results else {}
    ending = " ".join(filter(None, [result.get("outcome"), result.get("code")])) or f"exit {ended['code']}"
    marked = bool(result.get("nothing_changed"))
    return {"answer": result.get("text") or "", "ending": ending, "claims": ended["code"] == 0, "marked": marked}


def bare(run, setting):
    """The loop everybody writes first; see bare.py."""
    command = [sys.executable, str(pathlib.Path(__file__).with_name("bare.py")), run.url, str(TURNS), whole_prompt(run)]
    ended = start(run, command + ([setting] if setting else []), {})
    return {"answer": ended["stdout"], "ending": f"exit {ended['code']}", "claims": ended["code"] == 0, "marked": False}


def codex(run, binary, wire):
    home = run.folder / "home"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        f'model = "model"\nmodel_provider = "local"\nmodel_context_window = {WINDOW}\n[model_providers.local]\nname = "local"\n'
        f'base_url = "{run.url}"\nwire_api = "{wire}"\n'
    )
    answer = run.folder / "last.txt"
    command = [binary, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-o", str(answer), whole_prompt(run)]
    ended = start(run, command, {"CODEX_HOME": str(home)})
    said = answer.read_text(encoding="utf-8") if answer.exists() else ""
    return {"answer": said, "ending": f"exit {ended['code']}", "claims": ended["code"] == 0, "marked": False}


def goose(run, binary):
    environment = {
        "HOME": str(run.folder), "GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "model", "OPENAI_API_KEY": "none", "GOOSE_MODE": "auto",
        "OPENAI_HOST": run.url.removesuffix("/v1"), "OPENAI_BASE_PATH": "v1/chat/completions", "GOOSE_DISABLE_KEYRING": "1",
        "GOOSE_CONTEXT_LIMIT": str(WINDOW),
    }
    command = [binary, "run", "--no-session", "--quiet", "--with-builtin", "developer", "--max-turns", str(TURNS), "-t", whole_prompt(run)]
    ended = start(run, command, environment)
    return {"answer": ended["stdout"], "ending": f"exit {ended['code']}", "claims": ended["code"] == 0, "marked": False}


def whole_prompt(run):
    """The prompt for agents whose second try is a new conversation."""
    return f"{run.task.prompt}\n{run.prompt}" if run.is_second_try else run.prompt


def start(run, command, environment):
    """Runs an agent in the workspace with nothing of the user's, and ends it with all it started when its time is up."""
    base = {"PATH": os.environ["PATH"], "HOME": str(run.folder), "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    process = subprocess.Popen(
        command, cwd=run.workspace, env=base | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        # An agent that keeps to its own limit ends before this.
        stdout, stderr = process.communicate(timeout=run.seconds + 20)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        code = "killed"
    (run.folder / "stderr.txt").write_bytes(stderr)
    return {"code": code, "stdout": stdout.decode("utf-8", "replace")}


def lines_of(text):
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            pass


def named(name, haft_binary):
    """The agent of that name, or why there is none."""
    agent, _, setting = name.partition(":")
    if agent == "haft":
        return lambda run: haft(run, haft_binary, setting.split(":") if setting else [])
    if agent == "bare":
        return lambda run: bare(run, setting)
    binary = shutil.which(agent)
    if agent not in ("codex", "goose"):
        sys.exit(f"real-model: there is no agent `{name}`; choose from haft, haft:small, haft:xml, haft:xml:small, haft:react, bare, bare:text, codex and goose")
    if binary is None:
        return None
    if agent == "codex":
        # Versions before 0.90 speak `codex:chat`, too.
        return lambda run: codex(run, binary, setting or "responses")
    return lambda run: goose(run, binary)
