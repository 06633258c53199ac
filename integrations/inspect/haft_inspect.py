"""haft as an agent of Inspect (https://inspect.aisi.org.uk).

    inspect eval task.py --solver haft_inspect.py@haft --model anthropic/claude-sonnet-4-5

haft runs in the sample's sandbox. Its model requests go through Inspect's bridge, so the evaluation's model answers them and Inspect logs them.
"""

import json
import shutil
from pathlib import Path

from inspect_ai.agent import Agent, AgentState, agent, sandbox_agent_bridge
from inspect_ai.model import ChatMessageSystem, ChatMessageUser
from inspect_ai.util import sandbox as sandbox_environment

CONFIG = """model = "inspect/inspect"
[providers.inspect]
api = "openai-chat"
base_url = "http://localhost:{port}/v1"
[models."inspect/inspect"]
context_window = {context_window}
max_output_tokens = {max_output_tokens}
"""


@agent
def haft(
    binary: str = "haft",
    permission_mode: str = "yolo",
    max_turns: int | None = None,
    context_window: int = 200_000,
    max_output_tokens: int = 16_384,
    cwd: str | None = None,
    sandbox: str | None = None,
    port: int = 13131,
) -> Agent:
    """Runs `haft run` in the sandbox.

    Args:
        binary: The haft binary on this machine, which is copied into the sandbox.
        permission_mode: haft's permission mode. The sandbox is the boundary; `auto` adds haft's own.
        max_turns: Maximum replies of the model.
        context_window: The window of the evaluation's model, in tokens.
        max_output_tokens: Its longest reply.
        cwd: The folder to work in. Default: the sandbox's working directory.
        sandbox: The name of the sandbox, if there are several.
        port: The port of the bridge in the sandbox.
    """

    async def execute(state: AgentState) -> AgentState:
        async with sandbox_agent_bridge(state, model="inspect", sandbox=sandbox, port=port) as bridge:
            box = sandbox_environment(sandbox)
            made = await box.exec(["mktemp", "-d"])
            home = made.stdout.strip()
            program = f"{home}/haft"
            found = shutil.which(binary)
            if found is None:
                raise FileNotFoundError(f"`{binary}` is not in PATH; name haft's binary with -S binary=PATH")
            await box.write_file(program, Path(found).read_bytes())
            await box.exec(["chmod", "755", program])
            await box.write_file(f"{home}/config.toml", CONFIG.format(port=port, context_window=context_window, max_output_tokens=max_output_tokens))
            words = [program, "run", "--output-format", "json", "--permission-mode", permission_mode]
            system = "\n\n".join(message.text for message in state.messages if isinstance(message, ChatMessageSystem))
            if system:
                words += ["--append-system-prompt", system]
            if max_turns is not None:
                words += ["--max-turns", str(max_turns)]
            prompt = "\n\n".join(message.text for message in state.messages if isinstance(message, ChatMessageUser))
            ran = await box.exec([*words, "--", prompt], cwd=cwd, env={"HAFT_HOME": home})
            # A question (3) and a limit (4) are ends of a sample, not errors of the agent.
            if ran.returncode not in (0, 3, 4):
                raise RuntimeError(f"haft ended with exit code {ran.returncode}: {(ran.stdout + ran.stderr)[-2000:]}")
            answer = json.loads(ran.stdout.splitlines()[-1])
            if bridge.state.output.choices and answer.get("text"):
                bridge.state.output.completion = answer["text"]
        return bridge.state

    return execute
