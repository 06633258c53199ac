"""The options of an agent, the permission callback, and the command line made from them."""

from __future__ import annotations

import json
import os
import shutil
import sysconfig
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict

from ._errors import BinaryNotFound
from ._schema import build_schema
from ._tools import SERVER_NAME, Tool, ToolServer

BINARY_VARIABLE = "HAFT_BINARY"

PermissionMode: TypeAlias = Literal["plan", "ask", "accept-edits", "auto", "yolo"]


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A tool call that needs an approval.

    ``subject`` is the exact command that would run, or the exact change of a file. ``reason`` states
    why the call needs an approval.
    """

    tool: str
    input: Mapping[str, Any]
    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class Allow:
    """Allows a call. With ``input``, the call runs with these arguments instead.

    Deny rules apply to the new arguments, too.
    """

    input: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Deny:
    """Denies a call. The model receives ``reason``."""

    reason: str = ""


Decision: TypeAlias = Allow | Deny | bool
PermissionCallback: TypeAlias = Callable[[PermissionRequest], Decision | Awaitable[Decision]]


class Options(TypedDict, total=False):
    """The options of :class:`Agent`, :class:`AsyncAgent`, :func:`query` and :func:`query_async`."""

    model: str
    """The model, as ``provider/model``. The default is the configured model."""
    cwd: str | os.PathLike[str]
    """The project folder. The default is the current folder."""
    tools: Sequence[Tool[Any, Any] | Callable[..., Any]]
    """Functions of this program that the model may call."""
    permission: PermissionCallback
    """The function that decides about calls that need an approval. Without it, they are denied."""
    permission_mode: PermissionMode
    """The permission mode. The default is the configured mode, else ``ask``."""
    allow: Sequence[str]
    """Permission rules that allow calls, such as ``execute_command(git log:*)``."""
    deny: Sequence[str]
    """Permission rules that deny calls. They win over everything else."""
    builtin_tools: Sequence[str]
    """The tools of haft to offer. The default is all; an empty list offers none."""
    system_prompt: str
    """The system prompt, in place of haft's own."""
    append_system_prompt: str
    """Text to be added to the system prompt."""
    resume: str | None
    """The id or name of a conversation to continue. ``None`` starts a new one."""
    continue_last: bool
    """If true, continues the current conversation of the project."""
    fork: bool
    """If true, ``resume`` and ``continue_last`` continue in a copy of the conversation."""
    session_id: str
    """The id of the new conversation, a UUID. The default is a random one."""
    max_turns: int
    """The maximum number of replies in a turn."""
    max_budget_usd: float
    """The maximum cost in USD. Needs a model with a known price."""
    max_total_tokens: int
    """The maximum number of tokens, input and output together."""
    output_schema: Mapping[str, Any]
    """A JSON schema that the answer must match. :attr:`Result.output` is the answer."""
    output_type: Any
    """A type that the answer must match, in place of ``output_schema``, such as a dataclass."""
    partial: bool
    """If true, text is also sent in pieces while it arrives (:class:`TextDelta`)."""
    add_dirs: Sequence[str | os.PathLike[str]]
    """Further folders that tools may access."""
    mcp_servers: Mapping[str, Mapping[str, Any]]
    """MCP servers by name, in the format of ``mcpServers`` in ``.mcp.json``."""
    config: Mapping[str, str | int | float | bool]
    """Configuration values by key, such as ``{"retry.attempts": 2}``."""
    env: Mapping[str, str]
    """Environment variables, in addition to those of this program."""
    tool_timeout: float
    """The time limit for a call of one of ``tools``, in seconds. The default is one hour, haft's own
    limit. A plain function cannot be stopped: it goes on, and its result is ignored."""
    start_timeout: float
    """The time limit for the start of haft, in seconds. The default is 60."""
    binary: str | os.PathLike[str]
    """The path of the haft binary. The default is ``HAFT_BINARY``, then the binary that was
    installed with this package, then ``haft`` on ``PATH``."""


def find_binary(given: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> str:
    """Returns the path of the haft binary. Raises :class:`BinaryNotFound`."""
    named = given if given is not None else environment.get(BINARY_VARIABLE)
    if named:
        found = shutil.which(named, path=environment.get("PATH"))
        if found is None:
            origin = "the option `binary`" if given is not None else BINARY_VARIABLE
            raise BinaryNotFound(f"{os.fspath(named)} (from {origin}) is not an executable file")
        return str(Path(found).absolute())
    installed = Path(sysconfig.get_path("scripts")) / "haft"
    if os.access(installed, os.X_OK):
        return str(installed)
    on_path = shutil.which("haft", path=environment.get("PATH"))
    if on_path is None:
        raise BinaryNotFound(
            f"there is no haft binary in {installed.parent} or on PATH; install haft, set {BINARY_VARIABLE}, "
            "or use the option `binary`"
        )
    return on_path


def check_options(options: Options) -> None:
    """Raises ``TypeError`` or ``ValueError`` for options that cannot be used."""
    unknown = sorted(set(options) - set(Options.__annotations__))
    if unknown:
        raise TypeError(f"unknown options: {', '.join(unknown)}")
    for one, other in [("resume", "continue_last"), ("resume", "session_id"), ("output_schema", "output_type")]:
        if options.get(one) and options.get(other):
            raise ValueError(f"`{one}` and `{other}` exclude each other")
    if options.get("fork") and not (options.get("resume") or options.get("continue_last")):
        raise ValueError("`fork` needs `resume` or `continue_last`")
    if "tools" in options and SERVER_NAME in options.get("mcp_servers", {}):
        raise ValueError(f"the server name `{SERVER_NAME}` is used by `tools`")


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The JSON schema of the answer. ``is_wrapped`` is true if the answer is the only field,
    ``value``, of an object: providers accept only an object as the root."""

    schema: dict[str, Any]
    is_wrapped: bool


def build_output_schema(options: Options) -> OutputSchema | None:
    """Returns the JSON schema of the answer, if the options contain one."""
    if "output_type" in options:
        schema = build_schema(options["output_type"], "output_type")
        if schema.get("type") == "object":
            return OutputSchema(schema, is_wrapped=False)
        wrapper = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
        return OutputSchema({**wrapper, "additionalProperties": False}, is_wrapped=True)
    return OutputSchema(dict(options["output_schema"]), is_wrapped=False) if "output_schema" in options else None


def build_arguments(options: Options, server: ToolServer) -> list[str]:
    """Returns the arguments of the haft binary."""
    words = ["run", "--compat=claude", "--input-format=stream-json", "--output-format=stream-json"]
    if "permission" in options:
        words.append("--permission-prompt-tool=stdio")
    if options.get("partial"):
        words.append("--include-partial-messages")
    if "model" in options:
        # With `--compat claude`, haft replaces an unknown model by the configured one. A
        # configured model that is unknown is an error.
        words += ["--set", f"model={json.dumps(options['model'])}", f"--model={options['model']}"]
    if "session_id" in options:
        words.append(f"--session-id={options['session_id']}")
    if "max_turns" in options:
        words.append(f"--max-turns={options['max_turns']}")
    if "max_budget_usd" in options:
        words.append(f"--max-budget-usd={options['max_budget_usd']}")
    if "max_total_tokens" in options:
        words += ["--max-total-tokens", str(options["max_total_tokens"])]
    if "permission_mode" in options:
        words.append(f"--permission-mode={options['permission_mode']}")
    if options.get("resume"):
        words.append(f"--resume={options['resume']}")
    if options.get("continue_last"):
        words.append("--continue")
    if options.get("fork"):
        words.append("--fork-session")
    own = [made.full_name for made in server.tools.values() if not made.needs_approval]
    for rule in [*own, *options.get("allow", ())]:
        words += ["--allow", rule]
    for rule in options.get("deny", ()):
        words += ["--deny", rule]
    if "builtin_tools" in options:
        words.append(f"--tools={','.join(options['builtin_tools'])}")
    words += [f"--add-dir={os.fspath(folder)}" for folder in options.get("add_dirs", ())]
    for key, value in options.get("config", {}).items():
        words += ["--set", f"{key}={json.dumps(value)}"]
    servers: dict[str, Any] = {name: dict(entry) for name, entry in options.get("mcp_servers", {}).items()}
    if server.tools:
        servers[SERVER_NAME] = {"type": "sdk"}
    if servers:
        words.append(f"--mcp-config={json.dumps({'mcpServers': servers})}")
    return words


def build_initialize_request(options: Options, output: OutputSchema | None) -> dict[str, Any]:
    """Returns the request that is sent before the first prompt. It contains long texts, for which
    a command line may be too short."""
    request: dict[str, Any] = {"subtype": "initialize", "hooks": None}
    if "system_prompt" in options:
        request["systemPrompt"] = options["system_prompt"]
    if "append_system_prompt" in options:
        request["appendSystemPrompt"] = options["append_system_prompt"]
    if output is not None:
        request["jsonSchema"] = output.schema
    return request
