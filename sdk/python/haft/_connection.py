"""The connection to a haft process: JSON lines over its standard input and output."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ._errors import BinaryNotFound, ProcessEnded, ProtocolError
from ._tools import describe_error

logger = logging.getLogger("haft")

Handler = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]

MAX_STDERR_LINES = 40
MAX_STDERR_LINE_BYTES = 1 << 16
EXIT_TIMEOUT = 5.0
"""The time that each step of ending the process may take, in seconds."""
_CHUNK_BYTES = 1 << 16


class Connection:
    """A running haft process.

    ``handler`` answers the requests of haft. An exception of the handler is sent as an error, which
    haft takes for a refusal. Invariant: each request gets an answer, and all waiting calls end
    when the process ends.
    """

    def __init__(self, process: asyncio.subprocess.Process, handler: Handler) -> None:
        self._process = process
        self._handler = handler
        self._messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._stderr: deque[str] = deque(maxlen=MAX_STDERR_LINES)
        self._ids = itertools.count(1)
        self._requests: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._handlers: dict[str, asyncio.Task[None]] = {}
        self._has_ended = False
        self._stderr_task = asyncio.create_task(self._read_stderr())
        self._stdout_task = asyncio.create_task(self._read_stdout())

    @classmethod
    async def open(
        cls, command: Sequence[str], cwd: str | None, environment: Mapping[str, str], handler: Handler
    ) -> Connection:
        """Starts the process, in a session of its own: Ctrl-C reaches only this program, which then
        ends the process."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *command, cwd=cwd, env=dict(environment), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            raise BinaryNotFound(f"{command[0]} cannot be started: {error}") from error
        return cls(process, handler)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._has_ended

    async def send(self, line: Mapping[str, Any]) -> None:
        """Sends a line."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(line).encode() + b"\n")
            await stdin.drain()
        except (OSError, RuntimeError) as error:
            raise await self.build_end_error() from error

    async def request(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Sends a control request, and returns the response."""
        request_id = f"sdk-{next(self._ids)}"
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._requests[request_id] = answered
        try:
            if self._has_ended:
                raise await self.build_end_error()
            await self.send({"type": "control_request", "request_id": request_id, "request": dict(request)})
            async with asyncio.timeout(timeout):
                return await answered
        except TimeoutError:
            name = request["subtype"]
            raise ProtocolError(f"haft did not answer the request `{name}` within {timeout} s") from None
        finally:
            del self._requests[request_id]
            if answered.done() and not answered.cancelled():
                # If sending failed first, nobody else reads the error of the answer.
                answered.exception()

    async def receive(self) -> dict[str, Any]:
        """Returns the next message. Raises :class:`ProcessEnded` at the end."""
        message = await self._messages.get()
        if message is None:
            self._messages.put_nowait(None)
            raise await self.build_end_error()
        return message

    async def build_end_error(self) -> ProcessEnded:
        """Returns the error for a process that has ended or closed its pipes."""
        try:
            async with asyncio.timeout(EXIT_TIMEOUT):
                await self._process.wait()
                await self._stderr_task
        except TimeoutError:
            pass
        code = self._process.returncode
        what = "haft closed its output" if code is None else f"haft ended with exit code {code}"
        if code is not None and code < 0:
            what = f"haft was ended by signal {-code}"
        return ProcessEnded(what, code, "\n".join(self._stderr))

    async def close(self, *, is_busy: bool) -> None:
        """Ends the process: closes its input, then sends SIGTERM, then SIGKILL. With ``is_busy``,
        SIGTERM is sent at once, because the running turn would delay the end. It cancels the turn
        like Ctrl-C, and everything is stored."""
        process = self._process
        try:
            for task in self._handlers.values():
                task.cancel()
            if process.stdin is not None:
                process.stdin.close()
            steps: list[Callable[[], None] | None] = [process.terminate, process.kill]
            for end in steps if is_busy else [None, *steps]:
                if end is not None and process.returncode is None:
                    end()
                try:
                    async with asyncio.timeout(EXIT_TIMEOUT):
                        await process.wait()
                        break
                except TimeoutError:
                    continue
        finally:
            if process.returncode is None:
                try:
                    process.kill()
                except ProcessLookupError:
                    pass
            self._stdout_task.cancel()
            self._stderr_task.cancel()

    async def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        rest = b""
        while chunk := await stderr.read(_CHUNK_BYTES):
            *lines, rest = (rest[-MAX_STDERR_LINE_BYTES:] + chunk).split(b"\n")
            self._stderr.extend(line.decode(errors="replace") for line in lines)
        if rest:
            self._stderr.append(rest.decode(errors="replace"))

    async def _read_stdout(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        parts: list[bytes] = []
        error = ProcessEnded("the connection to haft was closed", None, "")
        try:
            while chunk := await stdout.read(_CHUNK_BYTES):
                *lines, rest = chunk.split(b"\n")
                if lines:
                    lines[0] = b"".join(parts) + lines[0]
                    parts.clear()
                parts.append(rest)
                for line in lines:
                    self._dispatch(line)
            self._mark_end()
            if self._requests:
                error = await self.build_end_error()
        finally:
            self._mark_end()
            for waiting in self._requests.values():
                if not waiting.done():
                    waiting.set_exception(error)
            for task in self._handlers.values():
                task.cancel()

    def _mark_end(self) -> None:
        self._has_ended = True
        self._messages.put_nowait(None)

    def _dispatch(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            kind = message["type"]
        except (ValueError, KeyError, TypeError):
            logger.warning("haft printed a line that is not a message: %.200r", line)
            return
        if kind == "control_request":
            request_id = message["request_id"]
            task = asyncio.create_task(self._answer(request_id, message["request"]))
            self._handlers[request_id] = task
            task.add_done_callback(lambda _: self._handlers.pop(request_id, None))
        elif kind == "control_cancel_request":
            if running := self._handlers.get(message["request_id"]):
                running.cancel()
        elif kind == "control_response":
            self._settle(message["response"])
        else:
            self._messages.put_nowait(message)

    def _settle(self, response: Mapping[str, Any]) -> None:
        waiting = self._requests.get(response["request_id"])
        if waiting is None or waiting.done():
            return
        if response["subtype"] == "success":
            waiting.set_result(response.get("response") or {})
        else:
            waiting.set_exception(ProtocolError(str(response.get("error"))))

    async def _answer(self, request_id: str, request: Mapping[str, Any]) -> None:
        response: dict[str, Any] = {"request_id": request_id}
        try:
            response |= {"subtype": "success", "response": await self._handler(request)}
        except Exception as error:
            response |= {"subtype": "error", "error": describe_error(error)}
        try:
            await self.send({"type": "control_response", "response": response})
        except ProcessEnded:
            # `receive` reports it.
            pass
