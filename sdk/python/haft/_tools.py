"""Tools that run inside the program, and the MCP server that serves them to haft."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, overload

from ._errors import HaftError, ToolSchemaError
from ._schema import build_schema, convert_fields, resolve_hints

_P = ParamSpec("_P")
_R = TypeVar("_R")

logger = logging.getLogger("haft")

SERVER_NAME = "app"
"""The name of the MCP server that serves a program's tools: ``mcp__app__TOOL``."""

_PROTOCOL_VERSION = "2025-06-18"
_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602


class ArgumentError(HaftError, ValueError):
    """The arguments of a call do not match the schema. The message is for the model."""


class Tool(Generic[_P, _R]):
    """A function that the model can call. It can still be called like the function itself.

    ``schema`` is the JSON schema of the arguments. If ``needs_approval`` is true, each call is
    passed to the permission callback; otherwise the tool runs without approval.
    """

    def __init__(
        self,
        function: Callable[_P, _R],
        name: str | None = None,
        description: str | None = None,
        needs_approval: bool = False,
    ) -> None:
        self.function = function
        self.name = name or str(getattr(function, "__name__", ""))
        if not self.name or not all(c.isascii() and (c.isalnum() or c in "_-") for c in self.name):
            raise ToolSchemaError(f"`{self.name}` is not a name of a tool: use letters, digits, `_` and `-`")
        self.description = description or inspect.getdoc(function) or ""
        self.needs_approval = needs_approval
        self._kinds, self._required = _read_parameters(function, self.name)
        properties = {name: build_schema(kind, f"{self.name}({name})") for name, kind in self._kinds.items()}
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.default is not inspect.Parameter.empty and _is_json(parameter.default):
                properties[name]["default"] = parameter.default
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "required": sorted(self._required),
            "additionalProperties": False,
        }

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return self.function(*args, **kwargs)

    @property
    def full_name(self) -> str:
        """The name in events and permission rules."""
        return f"mcp__{SERVER_NAME}__{self.name}"

    async def call(self, arguments: Mapping[str, Any]) -> str:
        """Calls the function with JSON arguments. Returns its result as text."""
        try:
            given = convert_fields(arguments, self._kinds, self._required, "")
        except ValueError as error:
            raise ArgumentError(str(error)) from error
        return _to_text(await call_function(self.function, **given))


@overload
def tool(function: Callable[_P, _R], /) -> Tool[_P, _R]: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, needs_approval: bool = False
) -> Callable[[Callable[_P, _R]], Tool[_P, _R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
) -> Any:
    """Makes a tool from a function. The schema of its arguments is made from the annotations, the
    description is the docstring, and ``Annotated[T, "text"]`` describes a parameter.

    Raises :class:`ToolSchemaError` if a parameter has no annotation or an unsupported type.
    """
    if function is not None:
        return Tool(function)
    return lambda decorated: Tool(decorated, name, description, needs_approval)


class ToolServer:
    """Answers the MCP messages that haft sends to the program's tools."""

    def __init__(self, tools: Iterable[Tool[Any, Any] | Callable[..., Any]], timeout: float | None) -> None:
        self._timeout = timeout
        self.tools: dict[str, Tool[Any, Any]] = {}
        self._calls: dict[Any, asyncio.Task[str]] = {}
        for entry in tools:
            made = entry if isinstance(entry, Tool) else Tool(entry)
            if made.name in self.tools:
                raise ToolSchemaError(f"two tools have the name `{made.name}`")
            self.tools[made.name] = made

    async def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the JSON-RPC answer to a message, or an empty object for a notification."""
        method, params = message.get("method"), message.get("params") or {}
        if "id" not in message:
            if method == "notifications/cancelled" and (running := self._calls.get(params.get("requestId"))):
                running.cancel()
            return {}
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        match method:
            case "initialize":
                info = {"name": SERVER_NAME, "version": "1"}
                version = params.get("protocolVersion", _PROTOCOL_VERSION)
                answer["result"] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                entries = [
                    {"name": made.name, "description": made.description, "inputSchema": made.schema}
                    for made in self.tools.values()
                ]
                answer["result"] = {"tools": entries}
            case "tools/call" if chosen := self.tools.get(str(params.get("name"))):
                answer["result"] = await self._call(message["id"], chosen, params.get("arguments") or {})
            case "tools/call":
                answer["error"] = {"code": _INVALID_PARAMS, "message": f"there is no tool `{params.get('name')}`"}
            case "ping":
                answer["result"] = {}
            case _:
                answer["error"] = {"code": _METHOD_NOT_FOUND, "message": f"`{method}` is not supported"}
        return answer

    async def _call(self, call_id: Any, chosen: Tool[Any, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        running = asyncio.create_task(chosen.call(arguments))
        self._calls[call_id] = running
        failed = True
        try:
            async with asyncio.timeout(self._timeout) as limit:
                text = await running
            failed = False
        except asyncio.CancelledError:
            running.cancel()
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            text = "the call was canceled"
        except ArgumentError as error:
            text = str(error)
        except Exception as error:
            if limit.expired():
                text = f"the call did not end within {self._timeout} s"
            else:
                logger.warning("the tool `%s` failed", chosen.name, exc_info=True)
                text = describe_error(error)
        finally:
            del self._calls[call_id]
        return {"content": [{"type": "text", "text": text}], "isError": failed}


async def call_function(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function or a coroutine function. A plain function runs in a thread of its own, so
    that it does not block the event loop. The thread does not keep the interpreter alive."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):
        return await function(*args, **kwargs)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def work() -> None:
        value, failure = None, None
        try:
            value = function(*args, **kwargs)
        except Exception as error:
            failure = error
        except BaseException as error:
            # `SystemExit` would end the event loop, and a future refuses `StopIteration`.
            failure = HaftError(describe_error(error))
        if isinstance(failure, StopIteration):
            failure = HaftError(describe_error(failure))
        try:
            loop.call_soon_threadsafe(settle, value, failure)
        except RuntimeError:
            # The event loop has ended, and with it the caller.
            pass

    threading.Thread(target=work, name=f"haft-{getattr(function, '__name__', 'call')}", daemon=True).start()
    value = await done
    return await _as_coroutine(value) if inspect.isawaitable(value) else value


def describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _as_coroutine(awaitable: Any) -> Coroutine[Any, Any, Any]:
    async def wait() -> Any:
        return await awaitable

    return wait()


def _read_parameters(function: Callable[..., Any], name: str) -> tuple[dict[str, Any], frozenset[str]]:
    hints = resolve_hints(function, name)
    kinds: dict[str, Any] = {}
    required = set()
    for parameter in inspect.signature(function).parameters.values():
        where = f"{name}({parameter.name})"
        if parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            raise ToolSchemaError(f"{where}: a tool needs parameters with names, not {parameter.kind.description}")
        if parameter.name not in hints:
            raise ToolSchemaError(f"{where}: the parameter has no annotation")
        kinds[parameter.name] = hints[parameter.name]
        if parameter.default is inspect.Parameter.empty:
            required.add(parameter.name)
    return kinds, frozenset(required)


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "(no result)"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return json.dumps(value, ensure_ascii=False, default=str)
