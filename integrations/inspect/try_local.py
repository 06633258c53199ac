"""Tries the agent without a container and without a model: `inspect eval try_local.py`.

The sandbox is a folder on this machine. A mock model writes a file and says so; the scorer reads the file.
"""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import Score, Target, accuracy, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import sandbox

from haft_inspect import haft

REPLIES = [
    ModelOutput.for_tool_call("mockllm/model", "write_to_file", {"path": "hello.txt", "content": "Hello, world!\n"}),
    ModelOutput.for_tool_call("mockllm/model", "execute_command", {"command": "wc -c hello.txt", "requires_approval": False}),
    ModelOutput.from_content("mockllm/model", "I wrote hello.txt."),
]


@scorer(metrics=[accuracy()])
def file_is_there():
    async def score(state: TaskState, target: Target) -> Score:
        text = await sandbox().read_file("hello.txt")
        return Score(value="C" if text == target.text else "I", answer=state.output.completion)

    return score


@task
def try_local():
    return Task(
        dataset=[Sample(input="Write hello.txt.", target="Hello, world!\n")],
        solver=haft(),
        scorer=file_is_there(),
        sandbox="local",
        model=get_model("mockllm/model", custom_outputs=REPLIES),
    )
