"""The synchronous agent: an asynchronous one on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from collections.abc import Awaitable, Coroutine, Generator
from types import TracebackType
from typing import Generic, Self, TypeVar, Unpack

from ._async_agent import AsyncAgent
from ._errors import HaftError
from ._events import Event, Result, Usage
from ._options import Options

_T = TypeVar("_T")

_CANCEL_TIMEOUT = 15.0
"""The time that a call may take to end after Ctrl-C, in seconds."""


class Agent:
    """An agent with one conversation.

    Use it with ``with``, or call :meth:`close`: both end the haft process. The process starts at the
    first prompt. An agent runs one turn at a time; :meth:`interrupt` may be called in any thread.
    Callbacks and tools run in other threads than the one that calls :meth:`run`.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self._agent = AsyncAgent(**options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def session_id(self) -> str | None:
        """The id of the conversation, for ``resume``. ``None`` before the first turn."""
        return self._agent.session_id

    @property
    def cost(self) -> float | None:
        """The cost of all turns of this agent in USD. ``None`` if a turn has no known cost."""
        return self._agent.cost

    @property
    def usage(self) -> Usage:
        """The tokens of all turns of this agent."""
        return self._agent.usage

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Starts the haft process, if it is not running."""
        self._wait(self._agent.start())

    def close(self) -> None:
        """Ends the haft process, with a turn that is still running. May be called repeatedly.

        A run in another thread returns with the outcome ``aborted``, or raises :class:`HaftError`.
        """
        with self._lock:
            self._is_closed = True
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is None or thread is None:
            return
        try:
            _Call(loop, self._agent.close()).wait()
        finally:
            asyncio.run_coroutine_threadsafe(_stop_loop(), loop)
            thread.join()
            _open_agents.discard(self)

    def run(self, prompt: str, *, timeout: float | None = None) -> Result:
        """Runs a turn, and returns its result.

        After ``timeout`` seconds, the turn is interrupted and :class:`RunTimeout` is raised.
        """
        return self._wait(self._agent.run(prompt, timeout=timeout))

    def stream(self, prompt: str, *, timeout: float | None = None) -> Generator[Event, None, None]:
        """Runs a turn, and yields its events. The last one is a :class:`Result`.

        A turn is interrupted if its iterator is closed before the result.
        """
        events = self._agent.stream(prompt, timeout=timeout)
        try:
            while (event := self._wait(anext(events, None))) is not None:
                yield event
        finally:
            if not self._is_closed:
                self._wait(events.aclose())

    def interrupt(self) -> None:
        """Interrupts the running turn. It ends with the outcome ``aborted``. Does nothing if no turn
        is running."""
        self._wait(self._agent.interrupt())

    def set_model(self, model: str | None) -> None:
        """Uses another model from the next turn on. ``None`` selects the first model again."""
        self._wait(self._agent.set_model(model))

    def set_permission_mode(self, mode: str) -> None:
        """Changes the permission mode. ``yolo`` is possible only if the agent started with it."""
        self._wait(self._agent.set_permission_mode(mode))

    def _wait(self, work: Awaitable[_T]) -> _T:
        """Runs ``work`` on the agent's event loop, and returns its result."""
        with self._lock:
            if self._is_closed:
                if isinstance(work, Coroutine):
                    work.close()
                raise HaftError("the agent is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run_loop, args=(self._loop,), name="haft-agent", daemon=True)
                self._thread.start()
                _open_agents.add(self)
            call = _Call(self._loop, work)
        return call.wait()


class _Call(Generic[_T]):
    """A call of a coroutine on the event loop of another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Awaitable[_T]) -> None:
        self._loop = loop
        self._work = work
        self._task: asyncio.Task[_T] | None = None
        self._done = threading.Event()
        loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        self._task = self._loop.create_task(_await(self._work))
        self._task.add_done_callback(lambda _: self._done.set())

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def wait(self) -> _T:
        try:
            self._done.wait()
        except BaseException:
            # After Ctrl-C, the turn must not go on. Its cleanup is finished before the error continues.
            self._loop.call_soon_threadsafe(self._cancel)
            self._done.wait(_CANCEL_TIMEOUT)
            raise
        assert self._task is not None
        try:
            return self._task.result()
        except asyncio.CancelledError:
            raise HaftError("the agent was closed during the call") from None


async def _await(work: Awaitable[_T]) -> _T:
    return await work


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _stop_loop() -> None:
    loop, current = asyncio.get_running_loop(), asyncio.current_task()
    rest = [task for task in asyncio.all_tasks() if task is not current]
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await loop.shutdown_asyncgens()
    loop.stop()


_open_agents: weakref.WeakSet[Agent] = weakref.WeakSet()


@atexit.register
def _close_agents() -> None:
    for agent in list(_open_agents):
        agent.close()


def query(prompt: str, *, timeout: float | None = None, **options: Unpack[Options]) -> Generator[Event, None, None]:
    """Runs one prompt in an agent of its own, and yields the events. The last one is a
    :class:`Result`."""
    with Agent(**options) as agent:
        yield from agent.stream(prompt, timeout=timeout)
