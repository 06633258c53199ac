"""The errors that the SDK raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._events import Result


class HaftError(Exception):
    """The base class of all errors of the SDK."""


class BinaryNotFound(HaftError):
    """The haft binary does not exist or cannot be started."""


class ProcessEnded(HaftError):
    """The haft process ended before it sent a result.

    ``exit_code`` is the exit code of the process, or the negative number of the signal that ended
    it. ``stderr`` contains the last lines that the process wrote to standard error.
    """

    def __init__(self, message: str, exit_code: int | None, stderr: str) -> None:
        super().__init__(f"{message}:\n{stderr}" if stderr else message)
        self.exit_code = exit_code
        self.stderr = stderr


class ProtocolError(HaftError):
    """haft rejected a request of the SDK, or sent a line that the SDK cannot read."""


class RunTimeout(HaftError, TimeoutError):
    """A run did not end within its time limit. The turn was interrupted."""


class RunFailed(HaftError):
    """A run ended without success. Raised only by :meth:`Result.raise_on_error`."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"{result.outcome} ({result.code}): {result.message}")
        self.result = result


class ToolSchemaError(HaftError, TypeError):
    """No JSON schema can be made for a parameter or a type."""
