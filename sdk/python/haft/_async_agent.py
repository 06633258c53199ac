"""The asynchronous agent, on which the synchronous one is built."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import Any, Self, Unpack

from ._connection import Connection
from ._errors import HaftError, ProtocolError, RunTimeout
from ._events import Event, Result, Started, Usage, parse_message, split_server_call
from ._options import (
    BINARY_VARIABLE,
    Allow,
    Deny,
    Options,
    PermissionRequest,
    build_arguments,
    build_initialize_request,
    build_output_schema,
    check_options,
    find_binary,
)
from ._schema import convert_value
from ._tools import SERVER_NAME, ToolServer, call_function, describe_error

logger = logging.getLogger("haft")

_DRAIN_TIMEOUT = 30.0
"""The time that an interrupted turn may take to end before the next one starts, in seconds."""
_REQUEST_TIMEOUT = 30.0
_RESERVE_TIMEOUT = 1.0


class AsyncAgent:
    """An agent with one conversation, for use with ``asyncio``.

    Use it with ``async with``, or call :meth:`close`: both end the haft process. The process starts
    at the first prompt. An agent runs one turn at a time.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        check_options(options)
        self._options = options
        self._server = ToolServer(options.get("tools", ()), options.get("tool_timeout"))
        self._output = build_output_schema(options)
        self._connection: Connection | None = None
        self._start_lock = asyncio.Lock()
        self._is_closed = False
        self._turn_lock = asyncio.Lock()
        # A prompt was sent, and its result has not arrived.
        self._turn_is_open = False
        self._session_id: str | None = options.get("session_id")
        self._cost: float | None = 0.0
        self._usage = Usage()

    @property
    def session_id(self) -> str | None:
        """The id of the conversation, for ``resume``. ``None`` before the first turn."""
        return self._session_id

    @property
    def cost(self) -> float | None:
        """The cost of all turns of this agent in USD. ``None`` if a turn has no known cost."""
        return self._cost

    @property
    def usage(self) -> Usage:
        """The tokens of all turns of this agent."""
        return self._usage

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Starts the haft process, if it is not running."""
        async with self._start_lock:
            if self._is_closed:
                raise HaftError("the agent is closed")
            if self._connection is not None:
                return
            environment = {**os.environ, **self._options.get("env", {})}
            binary = find_binary(self._options.get("binary"), environment)
            # haft warns about variables that begin with `HAFT_` and that it does not know.
            environment.pop(BINARY_VARIABLE, None)
            command = [binary, *build_arguments(self._options, self._server)]
            cwd = os.fspath(self._options["cwd"]) if "cwd" in self._options else None
            if cwd is not None and not os.path.isdir(cwd):
                raise NotADirectoryError(f"the option `cwd` is not a folder: {cwd}")
            connection = await Connection.open(command, cwd, environment, self._handle_request)
            try:
                request = build_initialize_request(self._options, self._output)
                await connection.request(request, self._options.get("start_timeout", 60.0))
            except BaseException:
                await connection.close(is_busy=True)
                raise
            self._connection = connection

    async def close(self) -> None:
        """Ends the haft process, with a turn that is still running. May be called repeatedly.

        A run in another task returns with the outcome ``aborted``, or raises :class:`HaftError`.
        """
        self._is_closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close(is_busy=self._turn_is_open)

    async def run(self, prompt: str, *, timeout: float | None = None) -> Result:
        """Runs a turn, and returns its result.

        After ``timeout`` seconds, the turn is interrupted and :class:`RunTimeout` is raised.
        """
        async with contextlib.aclosing(self.stream(prompt, timeout=timeout)) as events:
            async for event in events:
                if isinstance(event, Result):
                    return event
        raise ProtocolError("the turn ended without a result")

    async def stream(self, prompt: str, *, timeout: float | None = None) -> AsyncGenerator[Event, None]:
        """Runs a turn, and yields its events. The last one is a :class:`Result`.

        A turn is interrupted if its iterator is closed, or its task is canceled, before the result.
        """
        if not prompt.strip():
            raise ValueError("the prompt is empty")
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        await self._reserve_turn()
        try:
            async with asyncio.timeout_at(deadline):
                connection = await self._begin_turn(prompt)
            while self._turn_is_open:
                async with asyncio.timeout_at(deadline):
                    message = await connection.receive()
                for event in await self._read_message(message):
                    yield event
        except TimeoutError as error:
            if deadline is None or loop.time() < deadline:
                raise
            raise RunTimeout(f"the turn did not end within {timeout} s") from error
        finally:
            try:
                if self._turn_is_open:
                    await self._abandon_turn()
            finally:
                self._turn_lock.release()

    async def interrupt(self) -> None:
        """Interrupts the running turn. It ends with the outcome ``aborted``. Does nothing if no turn
        is running."""
        connection = self._connection
        if connection is None or not self._turn_is_open:
            return
        await connection.request({"subtype": "interrupt"}, _REQUEST_TIMEOUT)

    async def set_model(self, model: str | None) -> None:
        """Uses another model from the next turn on. ``None`` selects the first model again."""
        await self._request_control({"subtype": "set_model", "model": model})

    async def set_permission_mode(self, mode: str) -> None:
        """Changes the permission mode. ``yolo`` is possible only if the agent started with it."""
        await self._request_control({"subtype": "set_permission_mode", "mode": mode})

    async def _request_control(self, request: Mapping[str, Any]) -> None:
        await self.start()
        assert self._connection is not None
        await self._connection.request(request, _REQUEST_TIMEOUT)

    async def _reserve_turn(self) -> None:
        try:
            # An iterator that was just dropped is closed by the event loop a little later.
            async with asyncio.timeout(_RESERVE_TIMEOUT):
                await self._turn_lock.acquire()
        except TimeoutError:
            raise HaftError("the agent is already running a turn") from None

    async def _begin_turn(self, prompt: str) -> Connection:
        await self.start()
        connection = self._connection
        assert connection is not None
        if self._turn_is_open:
            await self._drain_turn(connection)
        self._turn_is_open = True
        await connection.send({"type": "user", "message": {"role": "user", "content": prompt}})
        return connection

    async def _drain_turn(self, connection: Connection) -> None:
        """Reads the rest of an interrupted turn."""
        try:
            async with asyncio.timeout(_DRAIN_TIMEOUT):
                while self._turn_is_open:
                    await self._read_message(await connection.receive())
        except TimeoutError:
            raise ProtocolError(f"the interrupted turn did not end within {_DRAIN_TIMEOUT} s") from None

    async def _abandon_turn(self) -> None:
        """Interrupts a turn whose events nobody reads. The next turn reads its rest."""
        try:
            await self.interrupt()
        except HaftError:
            # The next turn reports it.
            pass

    async def _read_message(self, message: Mapping[str, Any]) -> list[Event]:
        if message.get("subtype") == "error" and message.get("code") == "input":
            self._turn_is_open = False
            raise ProtocolError(message["message"])
        try:
            events = list(parse_message(message))
        except (KeyError, TypeError) as error:
            raise ProtocolError(f"a message of haft cannot be read: {describe_error(error)}") from error
        for index, event in enumerate(events):
            if isinstance(event, Started):
                self._session_id = event.session_id
            elif isinstance(event, Result):
                self._turn_is_open = False
                self._usage += event.usage
                known = self._cost is not None and event.cost is not None
                self._cost = (self._cost or 0.0) + (event.cost or 0.0) if known else None
                events[index] = self._convert_output(event)
        return events

    def _convert_output(self, result: Result) -> Result:
        """Converts the structured answer to ``output_type``."""
        if "output_type" not in self._options or self._output is None or result.output is None:
            return result
        value = result.output["value"] if self._output.is_wrapped else result.output
        return dataclasses.replace(result, output=convert_value(value, self._options["output_type"], "output"))

    async def _handle_request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        match request.get("subtype"):
            case "can_use_tool":
                return await self._decide(request)
            case "mcp_message" if request.get("server_name") == SERVER_NAME:
                return {"mcp_response": await self._server.answer(request["message"])}
            case other:
                raise ProtocolError(f"`{other}` is not supported")

    async def _decide(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Calls the permission callback. Anything but a clear permission is a refusal."""
        name, arguments = split_server_call(request["tool_name"], request["input"])
        asked = PermissionRequest(
            name, arguments, request.get("description") or "", request.get("decision_reason") or ""
        )
        try:
            decision = await call_function(self._options["permission"], asked)
        except Exception as error:
            logger.warning("the permission callback failed; the call is denied", exc_info=True)
            return {"behavior": "deny", "message": f"the permission callback failed: {describe_error(error)}"}
        if decision is True:
            decision = Allow()
        match decision:
            case Allow(input=changed):
                if changed is None:
                    return {"behavior": "allow"}
                if name != request["tool_name"]:
                    changed = {**request["input"], "arguments": dict(changed)}
                return {"behavior": "allow", "updatedInput": dict(changed)}
            case Deny(reason=reason):
                return {"behavior": "deny", "message": reason}
            case False:
                return {"behavior": "deny", "message": ""}
            case _:
                wrong = f"the permission callback returned {type(decision).__name__}; use Allow, Deny or a bool"
                logger.warning("%s; the call is denied", wrong)
                return {"behavior": "deny", "message": wrong}


async def query_async(
    prompt: str, *, timeout: float | None = None, **options: Unpack[Options]
) -> AsyncGenerator[Event, None]:
    """Runs one prompt in an agent of its own, and yields the events. The last one is a
    :class:`Result`."""
    async with AsyncAgent(**options) as agent:
        async with contextlib.aclosing(agent.stream(prompt, timeout=timeout)) as events:
            async for event in events:
                yield event
