"""haft, a coding agent, for programs in Python.

>>> from haft import Agent
>>> with Agent(model="anthropic/claude-sonnet-4-5") as agent:  # doctest: +SKIP
...     print(agent.run("What does this project do?").text)
"""

import sys

if sys.version_info < (3, 11):
    raise ImportError("the package `haft` needs Python 3.11 or newer")

from ._agent import Agent, query
from ._async_agent import AsyncAgent, query_async
from ._errors import (
    BinaryNotFound,
    HaftError,
    ProcessEnded,
    ProtocolError,
    RunFailed,
    RunTimeout,
    ToolSchemaError,
)
from ._events import (
    Compacted,
    Event,
    Notice,
    Result,
    Retry,
    Started,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    Usage,
)
from ._options import Allow, Decision, Deny, Options, PermissionCallback, PermissionMode, PermissionRequest
from ._tools import Tool, tool

__all__ = [
    "Agent",
    "Allow",
    "AsyncAgent",
    "BinaryNotFound",
    "Compacted",
    "Decision",
    "Deny",
    "Event",
    "HaftError",
    "Notice",
    "Options",
    "PermissionCallback",
    "PermissionMode",
    "PermissionRequest",
    "ProcessEnded",
    "ProtocolError",
    "Result",
    "Retry",
    "RunFailed",
    "RunTimeout",
    "Started",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "Tool",
    "ToolCall",
    "ToolResult",
    "ToolSchemaError",
    "Usage",
    "query",
    "query_async",
    "tool",
]
