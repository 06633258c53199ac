"""The events of a run, and the messages of haft from which they are made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ._errors import RunFailed


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one or more requests. The four classes are disjoint."""

    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        return self.input + self.cached_input + self.cache_write + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cached_input + other.cached_input,
            self.cache_write + other.cache_write,
            self.output + other.output,
        )


@dataclass(frozen=True, slots=True)
class Started:
    """A turn has started. ``session_id`` is the id of the conversation."""

    session_id: str
    model: str
    cwd: str
    permission_mode: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A complete text block of a reply."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A complete block of reasoning of a reply."""

    text: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of text, sent while the reply arrives. Needs the option ``partial``.

    The complete block follows as a :class:`Text`.
    """

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of reasoning, sent while the reply arrives. Needs the option ``partial``."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of the model. ``name`` is haft's name of the tool, or ``mcp__SERVER__TOOL``."""

    id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of the tool call with the id ``call_id``, as the model receives it."""

    call_id: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Retry:
    """A request failed and will be sent again. The text of the failed reply is void."""

    attempt: int
    limit: int
    delay_seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Compacted:
    """Old messages were replaced by a summary. ``tokens_before`` is the size of the last request."""

    tokens_before: int


@dataclass(frozen=True, slots=True)
class Notice:
    """A message of haft for the user."""

    code: str
    message: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a turn.

    ``outcome`` is ``completed``, ``waiting``, ``exhausted``, ``failed`` or ``aborted``; ``code`` and
    ``message`` state the cause. ``cost`` is in USD, or ``None`` if the model has no known price.
    ``output`` is the structured answer, if the options contain ``output_schema`` or ``output_type``.
    """

    text: str
    outcome: str
    code: str
    message: str
    is_error: bool
    session_id: str
    turns: int
    duration_seconds: float
    cost: float | None
    usage: Usage
    denied: tuple[ToolCall, ...] = ()
    output: Any = field(default=None)

    def raise_on_error(self) -> Result:
        """Returns this result, or raises :class:`RunFailed` if the run did not succeed."""
        if self.is_error:
            raise RunFailed(self)
        return self


Event: TypeAlias = (
    Started
    | Text
    | Thinking
    | TextDelta
    | ThinkingDelta
    | ToolCall
    | ToolResult
    | Retry
    | Compacted
    | Notice
    | Result
)


# Claude Code's names of the permission modes that haft names differently.
_MODES = {"default": "ask", "acceptEdits": "accept-edits", "bypassPermissions": "yolo"}


def split_server_call(name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Returns the name ``mcp__SERVER__TOOL`` and the arguments of the tool for a call of
    ``use_mcp_tool``. Returns any other call unchanged."""
    server, tool = arguments.get("server_name"), arguments.get("tool_name")
    if name != "use_mcp_tool" or not isinstance(server, str) or not isinstance(tool, str):
        return name, arguments
    inner = arguments.get("arguments")
    if isinstance(inner, str):
        try:
            inner = json.loads(inner)
        except ValueError:
            return name, arguments
    return f"mcp__{server}__{tool}", inner if isinstance(inner, dict) else {}


def parse_message(message: Mapping[str, Any]) -> Iterator[Event]:
    """Yields the events of one message. Messages without a counterpart yield none."""
    match message.get("type"), message.get("subtype"):
        case "system", "init":
            yield Started(
                message["session_id"],
                message["model"],
                message["cwd"],
                _MODES.get(message["permissionMode"], message["permissionMode"]),
                tuple(message["tools"]),
            )
        case "system", "compact_boundary":
            yield Compacted(message["compact_metadata"]["pre_tokens"])
        case "system", "api_retry":
            delay = message["retry_delay_ms"] / 1000
            yield Retry(message["attempt"], message["max_retries"], delay, message["error"])
        case "system", ("notice" | "error") as kind:
            yield Notice(message["code"], message["message"], kind == "error")
        case "stream_event", _:
            yield from _parse_delta(message["event"].get("delta") or {})
        case "assistant", _:
            for block in message["message"]["content"]:
                yield from _parse_block(block)
        case "user", _:
            for block in message["message"]["content"]:
                yield ToolResult(block["tool_use_id"], block["content"], block["is_error"])
        case "result", _:
            yield _parse_result(message)


def _parse_delta(delta: Mapping[str, Any]) -> Iterator[Event]:
    if delta.get("type") == "text_delta":
        yield TextDelta(delta["text"])
    elif delta.get("type") == "thinking_delta":
        yield ThinkingDelta(delta["thinking"])


def _parse_block(block: Mapping[str, Any]) -> Iterator[Event]:
    match block["type"]:
        case "text":
            yield Text(block["text"])
        case "thinking":
            yield Thinking(block["thinking"])
        case "tool_use":
            yield ToolCall(block["id"], *split_server_call(block["name"], block["input"]))


def _parse_result(message: Mapping[str, Any]) -> Result:
    usage = message["usage"]
    denied = tuple(
        ToolCall(denial["tool_use_id"], *split_server_call(denial["tool_name"], denial["tool_input"]))
        for denial in message["permission_denials"]
    )
    return Result(
        text=message["result"],
        outcome=message["outcome"],
        code=message["code"],
        message=message["message"],
        is_error=message["is_error"],
        session_id=message["session_id"],
        turns=message["num_turns"],
        duration_seconds=message["duration_ms"] / 1000,
        cost=message["total_cost_usd"] if message["cost_known"] else None,
        usage=Usage(
            usage["input_tokens"],
            usage["cache_read_input_tokens"],
            usage["cache_creation_input_tokens"],
            usage["output_tokens"],
        ),
        denied=denied,
        output=message.get("structured_output"),
    )
