"""haft as a compactor of compaction-conformance-kit.

Each session of the kit becomes a conversation of the real binary, with a home and a project of its own. A round is what a user
does: `haft context compact` archives everything but the newest step, and the next prompts continue the conversation. The text
that the kit scores is the next request that the model receives, without haft's system prompt.

The kit passes the text of round k to round k + 1 as a single system message. haft never compacts a summary again, so round k + 1
continues the conversation instead: FILLER_TURNS prompts are run, then everything since the last archive is archived.

`compaction-kit check haft_compactor.py:GoodWriter` scores one class; HAFT names the binary.
"""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from compaction_kit.canaries import CanaryType
from compaction_kit.compacted import CompactedContext
from compaction_kit.compactors import ChecklistCompactor
from compaction_kit.session import Turn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "sdk/python"))

from haft import Agent  # noqa: E402

FILLER_TURNS = 4
FILLER = "The dashboard mock number {} is ready for review."
LABEL = re.compile(r"^\[(user|assistant|system|tool) [0-9a-f]{8}\]\n", re.MULTILINE)
FORM = """## Objectives & Status
{}

## Technical Context
{}

## Completed Milestones
{}

## Key Insights & Decisions
{}

## File System State
none
"""
CONFIG = """model = "kit/main"
[model_roles]
summary = "kit/summary"
[providers.kit]
api = "openai-chat"
base_url = "http://127.0.0.1:{}/v1"
api_key_env = "KIT_KEY"
[models."kit/main"]
context_window = 200000
max_output_tokens = 8192
[models."kit/summary"]
context_window = 200000
max_output_tokens = 8192
[retry]
attempts = 1
base_delay_ms = 5
"""

Writer = Callable[[list[Turn]], str | None]


def write_checklist(turns: list[Turn]) -> str:
    """Returns a summary in haft's form with every item that the kit's own checklist compactor extracts."""
    items = ChecklistCompactor()._extract("\n".join(f"[{turn.role}] {turn.text}" for turn in turns))
    wishes = [item for kind in ("safety_rule", "hard_constraint", "user_preference") for item in items[kind]]

    def lines(entries: list[str], otherwise: str) -> str:
        return "\n".join(f"- {entry}" for entry in entries) or f"- {otherwise}"

    return FORM.format(
        lines(items[CanaryType.GOAL_STATE.value], "The user went on with the plan."),
        lines(items[CanaryType.FACT.value], "The pipeline and the dashboard were discussed."),
        "- reviewed the layout – acknowledged",
        lines(wishes, "No rule was added."),
    )


def write_vaguely(turns: list[Turn]) -> str:
    """Returns a fluent summary in haft's form without a single detail, in the words of the kit's naive summary."""
    return FORM.format(
        "- Earlier in the session the user set up a project.",
        "- Pipeline layout, caching, tests, and assorted configuration were discussed.",
        "- setup – done",
        "- Several rules and preferences were mentioned during setup.",
    )


def write_nothing(turns: list[Turn]) -> None:
    """Fails, so that haft keeps its list of facts in place of a summary."""


class Model:
    """A server that writes summaries with `writer`, answers everything else with one word, and keeps the requests."""

    def __init__(self, writer: Writer) -> None:
        model = self
        self.requests: list[dict[str, Any]] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if body["model"] == "summary":
                    text = writer(parse_session(body["messages"][-1]["content"]))
                else:
                    model.requests.append(body)
                    text = "Noted."
                self.send_response(500 if text is None else 200)
                self.send_header("content-type", "application/json" if text is None else "text/event-stream")
                self.end_headers()
                self.wfile.write(b'{"error": {"message": "no writer"}}' if text is None else stream(body["model"], text))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self.server.server_address[1]


def stream(model: str, text: str) -> bytes:
    """Returns a reply of Chat Completions as a stream of events."""
    head = {"id": "reply", "object": "chat.completion.chunk", "created": 0, "model": model}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**head, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}},
    ]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n"


def parse_session(text: str) -> list[Turn]:
    """Returns the messages of a request for a summary."""
    session = text.split("<session>\n", 1)[1].rsplit("\n</session>", 1)[0]
    _, *parts = LABEL.split(session)
    return [Turn(role, said.strip()) for role, said in zip(parts[::2], parts[1::2], strict=True)]


class HaftCompactor:
    """haft with one kind of writer. `outcomes` counts accepted archives and stand-ins."""

    name = "haft"
    writer: Writer = staticmethod(write_nothing)

    def __init__(self) -> None:
        self._haft = shutil.which(os.environ.get("HAFT", "haft"))
        if self._haft is None:
            sys.exit("no haft binary: set HAFT")
        self._model = Model(type(self).writer)
        self._folder = tempfile.TemporaryDirectory(prefix="haft-kit-")
        self._sessions = 0
        self._last_text: str | None = None
        self._filler = 0
        self.outcomes = {"summary": 0, "stand-in": 0}

    def compact(self, turns: list[Turn], round_num: int = 1) -> CompactedContext:
        if [turn.text for turn in turns] != [self._last_text]:
            self._open_session(turns)
        archived = self._run("context", "compact", self._conversation, fails=True)
        self.outcomes["summary" if archived.returncode == 0 else "stand-in"] += 1
        text = self._continue_conversation()
        self._last_text = text
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)

    def _open_session(self, turns: list[Turn]) -> None:
        """Imports a session of the kit into a new home."""
        self._sessions += 1
        root = pathlib.Path(self._folder.name, str(self._sessions))
        self._home, self._project = root / "home", root / "project"
        self._home.mkdir(parents=True)
        self._project.mkdir()
        (self._home / "config.toml").write_text(CONFIG.format(self._model.port))
        messages = root / "messages.json"
        messages.write_text(json.dumps([{"role": turn.role, "content": turn.text} for turn in turns]))
        imported = self._run("conversations", "import", "--format", "openai-chat", "--json", str(messages))
        self._conversation = json.loads(imported.stdout)[0]["id"]

    def _continue_conversation(self) -> str:
        """Runs the next prompts, and returns the messages of the first request, without the prompt."""
        before = len(self._model.requests)
        options = {"binary": self._haft, "cwd": self._project, "env": self._environment(), "resume": self._conversation}
        with Agent(**options) as agent:
            for _ in range(FILLER_TURNS):
                self._filler += 1
                agent.run(FILLER.format(self._filler)).raise_on_error()
        system, *rest, prompt = self._model.requests[before]["messages"]
        assert system["role"] == "system" and system["content"].startswith("You are haft"), system
        assert FILLER[:19] in read_text(prompt), prompt
        return "\n".join(f"[{message['role']}] {read_text(message)}" for message in rest)

    def _environment(self) -> dict[str, str]:
        return {"HOME": str(self._home), "HAFT_HOME": str(self._home), "KIT_KEY": "none"}

    def _run(self, *arguments: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            [self._haft, *arguments], cwd=self._project, env={**os.environ, **self._environment()}, capture_output=True, text=True
        )
        if ran.returncode != 0 and not fails:
            sys.exit(f"haft {' '.join(arguments)} failed: {ran.stderr}")
        return ran


def read_text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content if part["type"] == "text")


class GoodWriter(HaftCompactor):
    name = "haft, good writer"
    writer = staticmethod(write_checklist)


class BadWriter(HaftCompactor):
    name = "haft, bad writer"
    writer = staticmethod(write_vaguely)


class NoWriter(HaftCompactor):
    name = "haft, no writer"
    writer = staticmethod(write_nothing)
