"""What haft prints with `--compat claude`, read by the SDK that reads Claude Code, and haft driven by that SDK's own client.

usage: claude_sdk.py HAFT SCRIPTED_MODEL     in an environment with claude-code-sdk 0.0.25
"""

import asyncio
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from claude_code_sdk import AssistantMessage, ClaudeCodeOptions, ClaudeSDKClient, ResultMessage, SystemMessage, UserMessage
from claude_code_sdk import PermissionResultAllow, PermissionResultDeny, TextBlock, ToolUseBlock
from claude_code_sdk._internal.message_parser import parse_message

from haft_run import Checks, Place

HERE = pathlib.Path(__file__).parent
APIS = {"anthropic": "", "openai-chat": "/v1"}
# Model, further arguments, and how the result must read.
SESSIONS = [
    ("tools", [], "success"),
    ("tools", ["--include-partial-messages"], "success"),
    ("plain", [], "success"),
    ("question", [], "success"),
    ("denied", [], "success"),
    ("endless", ["--max-turns", "2"], "error_max_turns"),
    ("endless", ["--max-total-tokens", "1500"], "error_during_execution"),
    ("endless", ["--max-budget-usd", "0.004"], "error_max_budget_usd"),
    ("broken", [], "success"),
    ("drops", [], "success"),
    ("fails", [], "error_during_execution"),
    ("refuses", [], "error_during_execution"),
]
DENY = '[permissions]\ndeny = ["write_to_file(a.txt)"]'
PRICE = "price = { input = 3.0, output = 15.0 }"


def scripted(binary, folder):
    """Starts the scripted model; gives the process and its host."""
    urls = folder / "urls"
    server = subprocess.Popen([binary, HERE / "claude_sdk.yaml"], stdout=urls.open("w"), stderr=(folder / "refused").open("w"))
    for _ in range(100):
        if urls.read_text().endswith("\n"):
            break
        time.sleep(0.1)
    return server, next(word.split("=", 1)[1] for word in urls.read_text().split() if word.startswith("anthropic="))


def read(lines):
    """Every line as the SDK reads it; an error of its parser is ours."""
    return [parse_message(line) for line in lines]


def sessions(checks, haft, base):
    for api, version in APIS.items():
        for model, arguments, wanted in SESSIONS:
            with Place(haft, api, base + version, model=model, model_keys=PRICE, more=DENY) as place:
                ran = place.run("--compat", "claude", *arguments, "do it")
            try:
                messages = read(ran.events)
            except Exception as error:  # noqa: BLE001: whatever it is, it is what is tested
                checks.check(f"{api} {model} {' '.join(arguments)}: {error}", False, ran)
                continue
            first, last = messages[0], messages[-1]
            held = isinstance(first, SystemMessage) and isinstance(last, ResultMessage) and last.subtype == wanted
            if model == "tools":
                calls = [block for message in messages if isinstance(message, AssistantMessage) for block in message.content if isinstance(block, ToolUseBlock)]
                results = [message for message in messages if isinstance(message, UserMessage)]
                held = held and [call.name for call in calls] == ["write_to_file", "read_file", "attempt_completion"] and len(results) == 3
                held = held and last.result == "The note is written." and last.usage["output_tokens"] >= 40
            checks.check(f"{api} {model} {' '.join(arguments)}: {len(messages)} messages, {wanted}", held, ran)


async def drive(place, answer):
    """The SDK's client, with haft where it looks for `claude`: two turns, and a call that is asked for."""
    seen = []

    async def can_use_tool(name, given, _context):
        seen.append((name, given.get("path")))
        return answer

    options = ClaudeCodeOptions(cwd=str(place.project), can_use_tool=can_use_tool)
    texts = []
    async with ClaudeSDKClient(options=options) as client:
        for prompt in ["make a.txt", "and again"]:
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage):
                    texts += [block.text for block in message.content if isinstance(block, TextBlock)]
    return seen, texts


def client(checks, haft, base):
    for allowed in [True, False]:
        with Place(haft, "anthropic", base, model="denied", model_keys=PRICE) as place:
            programs = place.home / "bin"
            programs.mkdir()
            # The SDK says who is to be asked by a flag that haft has another name for.
            (programs / "claude").write_text(
                "#!/bin/sh\nfor word in \"$@\"; do shift; case $word in --permission-prompt-tool|stdio) ;; *) set -- \"$@\" \"$word\" ;; esac; done\n"
                f"exec '{haft}' run --compat claude --ask \"$@\"\n"
            )
            (programs / "claude").chmod(0o755)
            os.environ.update(PATH=f"{programs}:{os.environ['PATH']}", HOME=str(place.home), HAFT_HOME=str(place.home), MOCK_KEY="sk-mock")
            answer = PermissionResultAllow() if allowed else PermissionResultDeny(message="not now")
            seen, texts = asyncio.run(asyncio.wait_for(drive(place, answer), 60))
            exists = (place.project / "a.txt").exists()
            held = seen == [("write_to_file", "a.txt")] and texts == ["I may not.", "I may not."] and exists == allowed
            checks.check(f"the SDK's client drives two turns and {'allows' if allowed else 'denies'} a call", held, (seen, texts, exists))


def main():
    haft, model = sys.argv[1:]
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="haft-claude-") as folder:
        server, base = scripted(model, pathlib.Path(folder))
        try:
            sessions(checks, haft, base)
            client(checks, haft, base)
        finally:
            server.terminate()
            server.wait()
    sys.exit(1 if checks.failed else 0)


main()
