"""Tries the agent without a container: the sandbox is a folder on this machine, and the model is the scripted model.

    scripted-model try_local.yaml --port 8080
    SCRIPTED_BASE_URL=http://127.0.0.1:8080/v1 SCRIPTED_API_KEY=none inspect eval try_local.py --model openai-api/scripted/scripted-model
"""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, Target, accuracy, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import sandbox

from haft_inspect import haft


@scorer(metrics=[accuracy()])
def file_is_there():
    async def score(state: TaskState, target: Target) -> Score:
        text = await sandbox().read_file("hello.txt")
        return Score(value="C" if text == target.text else "I", answer=state.output.completion)

    return score


@task
def try_local():
    return Task(dataset=[Sample(input="Write hello.txt.", target="Hello, world!\n")], solver=haft(), scorer=file_is_there(), sandbox="local")
