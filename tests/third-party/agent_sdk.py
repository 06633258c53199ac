"""Claude's Agent SDK from PyPI drives haft: its own examples unchanged, and a client of our own for what they do not show.

usage: agent_sdk.py HAFT SCRIPTED_MODEL SOURCES     in an environment with claude-agent-sdk, made from the sdist unpacked in SOURCES
"""

import asyncio
import base64
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, ResultMessage, TextBlock
from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny, create_sdk_mcp_server, query, tool

from haft_run import Checks

HERE = pathlib.Path(__file__).parent
# The example and its arguments, what it must print, what it must not, and what must then be in the project.
EXAMPLES = [
    ("quick_start.py", ["Claude: 2 + 2 = 4", "Claude: A short answer.", "Claude: Done."], [], "hello.txt"),
    ("hooks.py PreToolUse", ["Claude: The hook did not let me.", "Claude: The command greeted us."], [], None),
    ("hooks.py UserPromptSubmit", ["Claude: Your favorite color is hot pink."], [], None),
    ("hooks.py PostToolUse", ["Claude: It went wrong, as you said."], [], None),
    ("hooks.py DecisionFields", ["Claude: The policy did not let me.", "Claude: Done."], [], "regular_file.txt"),
    ("hooks.py ContinueControl", ["Result ended"], ["Claude:"], None),
    ("mcp_calculator.py", ["Using tool: mcp__calc__add", "15 + 27 = 42", "Claude: The sum is 42.", "Claude: The root is 12."], [], None),
    ("tools_option.py", ["['Read', 'Grep', 'Glob']", "Tools from system message: []", "tools): ['Read', 'Write'"], [], None),
    ("tool_permission_callback.py", ["Tool Permission Request: Write", "Denying dangerous command", "Task completed"], [], None),
    ("include_partial_messages.py", ["StreamEvent(", "text_delta", "ResultMessage("], [], None),
    ("agents.py", ["Claude: The agent has reported."], [], None),
    ("filesystem_agents.py", ["SUCCESS: Received full response", "Agents loaded: ['test-agent']"], ["WARNING"], None),
    ("plugin_example.py", ["System initialized!"], [], None),
    ("stderr_callback_example.py", ["Captured"], [], None),
    ("system_prompt.py", ["Claude: 2 + 2 = 4"], [], None),
    ("setting_sources.py all", ["NOT available (expected)", "✓ /commit is available (expected)"], ["unexpected"], None),
    ("streaming_mode_trio.py", ["Conversation complete!"], [], None),
    ("max_budget_usd.py", ["Status: success", "Status: error_max_budget_usd", "Budget limit exceeded!"], [], None),
    ("streaming_mode.py basic_streaming", ["Claude: A short answer."], [], None),
    ("streaming_mode.py multi_turn_conversation", ["Result ended"], [], None),
    ("streaming_mode.py concurrent_responses", ["Claude: 2 + 2 = 4", "Claude: 12"], [], None),
    ("streaming_mode.py with_interrupt", ["sending interrupt", "Claude: A short answer."], [], None),
    ("streaming_mode.py manual_message_handling", ["Found language: Rust"], [], None),
    ("streaming_mode.py with_options", ["Tools used: Write"], [], "hello.txt"),
    ("streaming_mode.py bash_command", ["Tool Use: Bash", "Command: echo 'Hello from bash!'"], [], None),
    ("streaming_mode.py control_protocol", ["Server info retrieved", "Interrupt sent successfully", "Claude: A short answer."], [], None),
    ("streaming_mode.py error_handling", ["Claude: Done."], ["Unexpected error"], None),
]
PRICES = "price = { input = 3.0, output = 15.0 }"
# A red dot.
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg=="


class World:
    """A scripted model, and haft on the path as `claude`."""

    def __init__(self, haft, model, folder):
        self.haft, self.folder, self.count = haft, folder, 0
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "claude").symlink_to(haft)
        urls = folder / "urls"
        self.server = subprocess.Popen([model, HERE / "agent_sdk.yaml"], stdout=urls.open("w"), stderr=(folder / "refused").open("w"))
        while not urls.read_text().endswith("\n"):
            time.sleep(0.05)
        self.base = next(word.split("=", 1)[1] for word in urls.read_text().split() if word.startswith("anthropic="))

    def project(self, sources=None):
        """A project with a home of its own, trusted; the SDK's own repository where sources are given."""
        self.count += 1
        root = self.folder / str(self.count)
        home, project = root / "home", root / "project"
        home.mkdir(parents=True)
        shutil.copytree(sources, project) if sources else project.mkdir()
        models = "".join(f'[models."anthropic/{name}"]\n{PRICES}\n' for name in ["claude-sonnet-4-5", "second-model"])
        (home / "config.toml").write_text(f'model = "anthropic/claude-sonnet-4-5"\n[providers.anthropic]\nbase_url = "{self.base}"\n{models}')
        env = {
            "PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(home), "HAFT_HOME": str(home),
            "ANTHROPIC_API_KEY": "sk-mock", "LANG": "C.UTF-8",
        }
        return project, env

    def trust(self, project, env):
        subprocess.run([self.haft, "trust", str(project)], env=env, cwd=project, check=True, capture_output=True)


def example(world, sources, entry):
    name, wanted, unwanted, file = entry
    project, env = world.project(sources)
    # Files of the SDK's repository that its sdist leaves out, and two examples look for.
    for path, text in [
        (".claude/commands/commit.md", "Commit what is staged.\n"),
        (".claude/agents/test-agent.md", "---\nname: test-agent\ndescription: Tests.\n---\nYou test.\n"),
    ]:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    world.trust(project, env)
    words = name.split()
    command = [sys.executable, f"examples/{words[0]}", *words[1:]]
    begun = time.monotonic()
    ran = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=90, input="y\n" * 3)
    said = ran.stdout + ran.stderr
    held = ran.returncode == 0 and all(text in said for text in wanted) and not any(text in said for text in unwanted)
    held = held and (file is None or (project / file).exists())
    return f"examples/{name} ({time.monotonic() - begun:.1f} s)", held, f"exit code {ran.returncode}\n{said[-3000:]}"


async def talk(options, prompts):
    """The texts and results of several prompts to one client."""
    texts, results = [], []
    async with ClaudeSDKClient(options=options) as client:
        for prompt in prompts:
            if callable(prompt):
                await prompt(client)
                continue
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage):
                    texts += [block.text for block in message.content if isinstance(block, TextBlock)]
                if isinstance(message, ResultMessage):
                    results.append(message)
    return texts, results


def own_client(checks, world):
    def run(coroutine):
        return asyncio.run(asyncio.wait_for(coroutine, 60))

    def options(**more):
        project, env = world.project()
        return project, ClaudeAgentOptions(cwd=project, cli_path=world.bin / "claude", env=env, **more)

    # A callback that decides by the names of Claude's tools.
    for answer, exists in [(PermissionResultAllow(), True), (PermissionResultDeny(message="no"), False)]:
        asked = []

        async def decide(name, given, _context, answer=answer, asked=asked):
            asked.append((name, given["file_path"]))
            return answer

        project, chosen = options(can_use_tool=decide)
        run(talk(chosen, ["WRITE-A"]))
        held = asked == [("Write", str(project / "a.txt"))] and (project / "a.txt").exists() == exists
        checks.check(f"can_use_tool decides: {'allow' if exists else 'deny'}", held, asked)

    async def elsewhere(_name, given, _context):
        return PermissionResultAllow(updated_input={**given, "file_path": "b.txt"})

    project, chosen = options(can_use_tool=elsewhere)
    run(talk(chosen, ["WRITE-A"]))
    checks.check("can_use_tool changes the arguments", (project / "b.txt").exists() and not (project / "a.txt").exists(), list(project.iterdir()))

    # Nobody is asked: no. A rule that allows: yes. One that denies wins.
    for more, exists in [
        ({}, False), ({"allowed_tools": ["Write"]}, True), ({"permission_mode": "acceptEdits"}, True),
        ({"allowed_tools": ["Write"], "disallowed_tools": ["Write(a.txt)"]}, False), ({"permission_mode": "bypassPermissions"}, True),
        ({"allowed_tools": ["Write"], "settings": '{"permissions": {"deny": ["Write"]}}'}, False), ({"permission_mode": "dontAsk"}, False),
    ]:
        project, chosen = options(**more)
        run(talk(chosen, ["WRITE-A"]))
        checks.check(f"{more or 'without anything'}: {'written' if exists else 'not written'}", (project / "a.txt").exists() == exists, list(project.iterdir()))

    # A hook that fails, or never answers, keeps the call from running.
    async def broken(_input, _id, _context):
        raise RuntimeError("a bug in a hook")

    async def silent(_input, _id, _context):
        await asyncio.sleep(60)

    for name, hook in [("fails", broken), ("does not answer", silent)]:
        project, chosen = options(allowed_tools=["Bash"], hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[hook], timeout=1)]})
        run(talk(chosen, ["RUN-TOUCH"]))
        checks.check(f"a hook that {name} means no", not (project / "touched").exists(), list(project.iterdir()))
    seen = []

    async def note(given, _id, _context):
        seen.append((given["hook_event_name"], given.get("tool_name")))
        return {}

    points = ["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"]
    project, chosen = options(allowed_tools=["Bash"], hooks={point: [HookMatcher(hooks=[note])] for point in points})
    run(talk(chosen, ["RUN-TOUCH"]))
    wanted = [("UserPromptSubmit", None), ("PreToolUse", "Bash"), ("PostToolUse", "Bash"), ("Stop", None)]
    checks.check("hooks are called at four points", seen == wanted and (project / "touched").exists(), seen)

    @tool("add", "Add two numbers", {"a": int, "b": int})
    async def add(given):
        return {"content": [{"type": "text", "text": f"sum: {given['a'] + given['b']}"}]}

    server = create_sdk_mcp_server("adder", tools=[add])
    for allowed, said in [(["mcp__adder__add"], "The sum is 5."), ([], "Done.")]:
        _, chosen = options(mcp_servers={"adder": server}, allowed_tools=allowed)
        texts, _ = run(talk(chosen, ["CALL-ADD"]))
        checks.check(f"a server in the client's process, allowed: {bool(allowed)}", texts == [said], texts)

    # Another model and another mode, in the middle of a conversation.
    project, chosen = options()
    texts, _ = run(talk(chosen, ["2 + 2", lambda client: client.set_model("anthropic/second-model"), "hello", lambda client: client.set_model(None), "2 + 2"]))
    checks.check("set_model", texts == ["2 + 2 = 4", "I am the second model.", "2 + 2 = 4"], texts)
    run(talk(chosen, ["2 + 2", lambda client: client.set_permission_mode("acceptEdits"), "WRITE-A"]))
    checks.check("set_permission_mode", (project / "a.txt").exists(), list(project.iterdir()))

    async def to_bypass(client):
        try:
            await client.set_permission_mode("bypassPermissions")
        except Exception as error:  # noqa: BLE001: the SDK raises no kind of its own
            return refused.append(str(error))

    refused = []
    run(talk(options()[1], ["2 + 2", to_bypass]))
    checks.check("bypassPermissions only where the run was started so", len(refused) == 1 and "dangerously" in refused[0], refused)

    # An image, and the id of the conversation.
    async def with_image():
        content = [{"type": "text", "text": "SEE-IMAGE"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}]
        yield {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None, "session_id": ""}

    chosen_id = "0b3f1c9e-4a89-4b7e-9c55-3f6d3a1e7f10"
    _, chosen = options(session_id=chosen_id)
    texts, results = run(talk(chosen, [with_image()]))
    checks.check("an image, and a chosen id", base64.b64decode(IMAGE)[:4] == b"\x89PNG" and texts == ["A short answer."] and results[0].session_id == chosen_id, (texts, results))

    async def again():
        chosen.session_id, chosen.resume = None, chosen_id
        return [message async for message in query(prompt="2 + 2", options=chosen) if isinstance(message, ResultMessage)]

    results = run(again())
    checks.check("resume", results[0].session_id == chosen_id and results[0].result == "2 + 2 = 4", results)


def main():
    haft, model, sources = sys.argv[1:]
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="haft-agent-sdk-") as folder:
        world = World(haft, model, pathlib.Path(folder))
        try:
            own_client(checks, world)
            with ThreadPoolExecutor(4) as pool:
                for what, held, said in pool.map(lambda entry: example(world, sources, entry), EXAMPLES):
                    checks.check(what, held, said)
        finally:
            world.server.terminate()
            world.server.wait()
    sys.exit(1 if checks.failed else 0)


main()
