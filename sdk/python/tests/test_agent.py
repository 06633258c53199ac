"""The synchronous agent, against the scripted model with the real binary."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any

import haft
from haft import Agent, Allow, Decision, Deny, Options, PermissionRequest, query, tool
from scripted import ScriptedTest

SOURCES = pathlib.Path(haft.__file__).parent.parent


@tool
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return f"sum: {a + b}"


@tool
def lookup(customer: str) -> str:
    """Looks up a customer."""
    raise LookupError(f"no such customer: {customer}")


@dataclasses.dataclass(frozen=True)
class City:
    city: str
    people: int


class TextTest(ScriptedTest):
    def test_query_yields_events_and_ends_the_process(self) -> None:
        events = list(query("hello", cwd=self.project))
        kinds = [type(event).__name__ for event in events if not isinstance(event, haft.Notice)]
        self.assertEqual(kinds, ["Started", "Text", "Result"])
        first, last = events[0], events[-1]
        assert isinstance(first, haft.Started) and isinstance(last, haft.Result)
        self.assertEqual((first.model, first.cwd, first.permission_mode), ("mock/priced", str(self.project), "ask"))
        self.assertEqual((last.text, last.outcome, last.is_error), ("A short answer.", "completed", False))
        self.assertEqual(first.session_id, last.session_id)
        self.assertEqual(self.haft_processes(), [])
        with self.assertRaises(dataclasses.FrozenInstanceError):
            last.text = "x"  # type: ignore[misc]

    def test_run_returns_the_result_of_each_turn(self) -> None:
        with Agent(cwd=self.project) as agent:
            self.assertIsNone(agent.session_id)
            first = agent.run("my name is Ada")
            second = agent.run("What is my name?")
            self.assertEqual([first.text, second.text], ["Hello, Ada.", "Your name is Ada."])
            self.assertEqual(agent.session_id, first.session_id)
        self.assertEqual(self.haft_processes(), [])

    def test_partial_sends_text_while_it_arrives(self) -> None:
        events = list(query("COUNT-FAST", cwd=self.project, partial=True))
        pieces = [event.text for event in events if isinstance(event, haft.TextDelta)]
        whole = [event.text for event in events if isinstance(event, haft.Text)]
        self.assertGreater(len(pieces), 5)
        self.assertEqual(["".join(pieces)], whole)

    def test_thinking_is_an_event(self) -> None:
        events = list(query("WRITE-A", cwd=self.project))
        self.assertIn(haft.Thinking("I write a file."), events)

    def test_long_lines_pass_in_both_directions(self) -> None:
        prompt = "x" * 300_000

        @tool(name="add")
        def long_sum(a: int, b: int) -> str:
            """Adds."""
            return f"sum: {a + b} " + "y" * 300_000

        with Agent(cwd=self.project, tools=[long_sum]) as agent:
            self.assertEqual(agent.run(prompt).outcome, "completed")
            self.assertEqual(agent.run("CALL-ADD").outcome, "completed")

    def test_a_prompt_that_haft_rejects_is_an_error(self) -> None:
        with Agent(cwd=self.project) as agent:
            with self.assertRaisesRegex(ValueError, "the prompt is empty"):
                agent.run(" \n")
            with self.assertRaisesRegex(haft.ProtocolError, "longer than 16 MiB"):
                agent.run("x" * (17 << 20))
            self.assertEqual(agent.run("hello").text, "A short answer.")


class PermissionTest(ScriptedTest):
    def write_a(self, decision: Any) -> tuple[list[PermissionRequest], list[haft.Event]]:
        """Runs a turn that writes a.txt, with a callback that returns or raises `decision`."""
        asked: list[PermissionRequest] = []

        def decide(request: PermissionRequest) -> Decision:
            asked.append(request)
            if isinstance(decision, BaseException):
                raise decision
            result: Decision = decision
            return result

        with Agent(cwd=self.project, permission=decide) as agent:
            return asked, list(agent.stream("WRITE-A", timeout=60))

    def tool_results(self, events: list[haft.Event]) -> list[haft.ToolResult]:
        return [event for event in events if isinstance(event, haft.ToolResult)]

    def test_allow_runs_the_call(self) -> None:
        for decision in (Allow(), True):
            with self.subTest(decision=decision):
                asked, events = self.write_a(decision)
                self.assertEqual([(one.tool, one.input["path"]) for one in asked], [("write_to_file", "a.txt")])
                self.assertIn("+x", asked[0].subject)
                self.assertIn("no rule allows", asked[0].reason)
                self.assertEqual((self.project / "a.txt").read_text(), "x")
                self.assertEqual([result.is_error for result in self.tool_results(events)], [False])
                (self.project / "a.txt").unlink()

    def test_deny_sends_the_reason_to_the_model(self) -> None:
        _, events = self.write_a(Deny("not in this folder"))
        self.assertFalse((self.project / "a.txt").exists())
        (result,) = self.tool_results(events)
        self.assertTrue(result.is_error)
        self.assertIn("not in this folder", result.text)
        last = events[-1]
        assert isinstance(last, haft.Result)
        self.assertEqual([call.name for call in last.denied], ["write_to_file"])

    def test_false_denies(self) -> None:
        self.write_a(False)
        self.assertFalse((self.project / "a.txt").exists())

    def test_allow_with_input_changes_the_call(self) -> None:
        self.write_a(Allow({"path": "b.txt", "content": "y"}))
        self.assertEqual([path.name for path in self.project.iterdir()], ["b.txt"])
        self.assertEqual((self.project / "b.txt").read_text(), "y")

    def test_a_deny_rule_applies_to_changed_input(self) -> None:
        def decide(request: PermissionRequest) -> Decision:
            return Allow({"path": "b.txt", "content": "y"})

        with Agent(cwd=self.project, permission=decide, deny=["write_to_file(b.txt)"]) as agent:
            agent.run("WRITE-A")
        self.assertEqual(list(self.project.iterdir()), [])

    def test_a_callback_that_raises_denies_with_the_text_of_the_error(self) -> None:
        for error in (RuntimeError("the callback is broken"), SystemExit("the callback is broken"), StopIteration("the callback is broken")):
            with self.subTest(error=error), self.assertLogs("haft", logging.WARNING):
                _, events = self.write_a(error)
                self.assertFalse((self.project / "a.txt").exists())
                self.assertIn("the callback is broken", self.tool_results(events)[0].text)
                self.assertEqual([event.text for event in events if isinstance(event, haft.Text)][0], "The callback failed.")

    def test_anything_but_a_decision_denies(self) -> None:
        for decision in (None, 1, "allow", {"behavior": "allow"}):
            with self.subTest(decision=decision), self.assertLogs("haft", logging.WARNING):
                _, events = self.write_a(decision)
                self.assertFalse((self.project / "a.txt").exists())
                self.assertIn("use Allow, Deny or a bool", self.tool_results(events)[0].text)

    def test_without_a_callback_the_call_is_denied(self) -> None:
        result = list(query("WRITE-A", cwd=self.project))[-1]
        assert isinstance(result, haft.Result)
        self.assertFalse((self.project / "a.txt").exists())
        self.assertEqual([call.name for call in result.denied], ["write_to_file"])

    def test_rules_and_modes_decide_without_the_callback(self) -> None:
        def refuse(request: PermissionRequest) -> Decision:
            raise AssertionError("asked")

        cases: list[tuple[Options, bool]] = [
            ({"allow": ["write_to_file(a.txt)"]}, True),
            ({"permission_mode": "accept-edits"}, True),
            ({"permission_mode": "yolo"}, True),
            ({"permission_mode": "yolo", "deny": ["write_to_file"]}, False),
            ({"permission_mode": "plan"}, False),
        ]
        for options, exists in cases:
            with self.subTest(options=options):
                list(query("WRITE-A", cwd=self.project, permission=refuse, **options))  # type: ignore[misc]
                self.assertEqual((self.project / "a.txt").exists(), exists)
                (self.project / "a.txt").unlink(missing_ok=True)

    def test_an_async_callback_is_awaited(self) -> None:
        async def decide(request: PermissionRequest) -> Decision:
            await asyncio.sleep(0.01)
            return Deny("not in this folder")

        with Agent(cwd=self.project, permission=decide) as agent:
            events = list(agent.stream("WRITE-A"))
        self.assertIn(haft.Text("It was denied."), events)

    def test_set_permission_mode_applies_to_the_next_turn(self) -> None:
        with Agent(cwd=self.project) as agent:
            agent.run("hello")
            agent.set_permission_mode("accept-edits")
            agent.run("WRITE-A")
            with self.assertRaisesRegex(haft.ProtocolError, "dangerously-skip-permissions"):
                agent.set_permission_mode("yolo")
        self.assertTrue((self.project / "a.txt").exists())


class ToolTest(ScriptedTest):
    def test_a_tool_runs_without_approval_under_both_names(self) -> None:
        for prompt in ("CALL-ADD", "USE-ADD"):
            with self.subTest(prompt=prompt):
                events = list(query(prompt, cwd=self.project, tools=[add]))
                calls = [(event.name, event.input) for event in events if isinstance(event, haft.ToolCall)]
                self.assertEqual(calls, [("mcp__app__add", {"a": 2, "b": 3})])
                self.assertIn(haft.Text("The sum is 5."), events)

    def test_needs_approval_asks_the_callback(self) -> None:
        asked: list[PermissionRequest] = []

        def decide(request: PermissionRequest) -> Decision:
            asked.append(request)
            return Allow({"a": 1, "b": 4})

        checked = tool(name="add", description="Adds.", needs_approval=True)(lambda_free_add)
        for prompt in ("CALL-ADD", "USE-ADD"):
            with self.subTest(prompt=prompt), Agent(cwd=self.project, tools=[checked], permission=decide) as agent:
                self.assertEqual(agent.run(prompt).text, "The sum is 5.")
                self.assertEqual((asked[-1].tool, asked[-1].input), ("mcp__app__add", {"a": 2, "b": 3}))
        self.assertEqual(received, [(1, 4), (1, 4)])
        with Agent(cwd=self.project, tools=[checked]) as agent:
            self.assertEqual(agent.run("CALL-ADD").text, "Done.")
        self.assertEqual(len(received), 2)

    def test_an_error_in_a_tool_is_a_result_for_the_model(self) -> None:
        with self.assertLogs("haft", logging.WARNING), Agent(cwd=self.project, tools=[lookup]) as agent:
            events = list(agent.stream("CALL-LOOKUP"))
        (result,) = [event for event in events if isinstance(event, haft.ToolResult)]
        self.assertTrue(result.is_error)
        self.assertIn("LookupError: no such customer: Ada", result.text)
        self.assertIn(haft.Text("The tool failed."), events)

    def test_wrong_arguments_are_a_result_for_the_model(self) -> None:
        events = list(query("CALL-BADLY", cwd=self.project, tools=[add]))
        self.assertIn(haft.Text("The arguments were wrong."), events)

    def test_a_tool_that_exceeds_its_time_limit_is_canceled(self) -> None:
        canceled = threading.Event()

        @tool
        async def sleep() -> None:
            """Sleeps."""
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                canceled.set()
                raise

        with Agent(cwd=self.project, tools=[sleep], tool_timeout=1) as agent:
            result = agent.run("CALL-SLEEP", timeout=30)
            self.assertEqual(result.text, "Done.")
            self.assertTrue(canceled.wait(10))

    def test_two_tools_with_one_name_are_an_error(self) -> None:
        with self.assertRaisesRegex(haft.ToolSchemaError, "two tools have the name `add`"):
            Agent(tools=[add, add])


def call_when_started(agent: Agent, function: Callable[[], None]) -> threading.Thread:
    """Calls a function in another thread, once the agent has started its first turn."""

    def wait() -> None:
        while agent.session_id is None:
            time.sleep(0.01)
        function()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


received: list[tuple[int, int]] = []


def lambda_free_add(a: int, b: int) -> str:
    received.append((a, b))
    return f"sum: {a + b}"


class ConversationTest(ScriptedTest):
    def test_resume_continues_a_conversation(self) -> None:
        with Agent(cwd=self.project) as agent:
            session_id = agent.run("my name is Ada").session_id
        with Agent(cwd=self.project, resume=session_id) as agent:
            result = agent.run("What is my name?")
        self.assertEqual((result.text, result.session_id), ("Your name is Ada.", session_id))

    def test_continue_last_and_fork(self) -> None:
        with Agent(cwd=self.project) as agent:
            session_id = agent.run("my name is Ada").session_id
        with Agent(cwd=self.project, continue_last=True, fork=True) as agent:
            forked = agent.run("What is my name?")
        self.assertEqual(forked.text, "Your name is Ada.")
        self.assertNotEqual(forked.session_id, session_id)
        with Agent(cwd=self.project, resume=session_id) as agent:
            self.assertEqual(agent.run("What is my name?").text, "Your name is Ada.")

    def test_session_id_names_the_new_conversation(self) -> None:
        chosen = "0b3f1c9e-4a89-4b7e-9c55-3f6d3a1e7f10"
        with Agent(cwd=self.project, session_id=chosen) as agent:
            self.assertEqual(agent.run("hello").session_id, chosen)

    def test_resume_of_an_unknown_conversation_fails(self) -> None:
        with Agent(cwd=self.project, resume="nothing-like-it") as agent:
            with self.assertRaisesRegex(haft.ProcessEnded, "nothing-like-it") as caught:
                agent.run("hello")
        self.assertEqual(caught.exception.exit_code, 2)

    def test_contradictory_options_are_errors(self) -> None:
        for options, message in [
            ({"resume": "a", "continue_last": True}, "exclude each other"),
            ({"fork": True}, "`fork` needs"),
            ({"output_type": int, "output_schema": {}}, None),
            ({"tools": [add], "mcp_servers": {"app": {}}}, "is used by `tools`"),
        ]:
            if message is not None:
                with self.subTest(options=options), self.assertRaisesRegex(ValueError, message):
                    Agent(**options)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "unknown options: modle"):
            Agent(modle="x")  # type: ignore[call-arg]


class InterruptTest(ScriptedTest):
    def test_interrupt_from_another_thread_ends_the_turn(self) -> None:
        with Agent(cwd=self.project) as agent:
            call_when_started(agent, agent.interrupt)
            result = agent.run("COUNT-SLOWLY", timeout=60)
            self.assertEqual((result.outcome, result.is_error), ("aborted", True))
            self.assertEqual(agent.run("AFTER-INTERRUPT").text, "I go on.")

    def test_interrupt_ends_a_running_command(self) -> None:
        with Agent(cwd=self.project, permission_mode="yolo") as agent:
            for event in agent.stream("RUN-SLEEP", timeout=60):
                if isinstance(event, haft.ToolCall):
                    agent.interrupt()
        assert isinstance(event, haft.Result)
        self.assertEqual(event.outcome, "aborted")

    def test_interrupt_before_the_turn_is_announced_ends_it(self) -> None:
        with Agent(cwd=self.project) as agent:
            starting = threading.Thread(target=lambda: results.append(agent.run("COUNT-SLOWLY", timeout=60)))
            results: list[haft.Result] = []
            starting.start()
            while not agent._agent._turn_is_open:
                time.sleep(0.001)
            agent.interrupt()
            starting.join()
        self.assertEqual(results[0].outcome, "aborted")

    def test_interrupt_without_a_turn_does_nothing(self) -> None:
        with Agent(cwd=self.project) as agent:
            agent.interrupt()
            self.assertEqual(agent.run("hello").text, "A short answer.")
            agent.interrupt()

    def test_a_closed_iterator_interrupts_its_turn(self) -> None:
        with Agent(cwd=self.project) as agent:
            for event in agent.stream("COUNT-SLOWLY"):
                break
            self.assertEqual(agent.run("AFTER-INTERRUPT", timeout=60).text, "I go on.")

    def test_timeout_interrupts_the_turn(self) -> None:
        with Agent(cwd=self.project) as agent:
            with self.assertRaisesRegex(haft.RunTimeout, "did not end within 0.5 s"):
                agent.run("COUNT-SLOWLY", timeout=0.5)
            self.assertEqual(agent.run("AFTER-INTERRUPT").text, "I go on.")
        with Agent(cwd=self.project) as agent, self.assertRaises(TimeoutError):
            agent.run("COUNT-SLOWLY", timeout=0.001)
        self.assertEqual(self.haft_processes(), [])

    def test_a_second_turn_at_a_time_is_an_error(self) -> None:
        with Agent(cwd=self.project) as agent:
            events = agent.stream("COUNT-SLOWLY")
            next(events)
            with self.assertRaisesRegex(haft.HaftError, "already running a turn"):
                agent.run("hello")


class ResultTest(ScriptedTest):
    def test_cost_is_the_sum_of_all_turns(self) -> None:
        with Agent(cwd=self.project) as agent:
            self.assertEqual(agent.cost, 0.0)
            first = agent.run("hello")
            self.assertAlmostEqual(first.cost or 0, (1000 * 3 + 20 * 15) / 1e6)
            second = agent.run("hello")
            self.assertAlmostEqual(agent.cost or 0, (first.cost or 0) + (second.cost or 0))
            self.assertEqual(agent.usage, haft.Usage(input=2000, output=40))
            self.assertEqual(agent.usage.total, 2040)

    def test_cost_is_none_without_a_price(self) -> None:
        with Agent(cwd=self.project, model="mock/free") as agent:
            self.assertIsNone(agent.run("hello").cost)
            self.assertIsNone(agent.cost)

    def test_a_failed_run_is_an_error_on_request(self) -> None:
        with Agent(cwd=self.project) as agent:
            result = agent.run("FAIL-NOW")
            self.assertEqual((result.is_error, result.outcome), (True, "failed"))
            with self.assertRaises(haft.RunFailed) as caught:
                result.raise_on_error()
            self.assertIs(caught.exception.result, result)
            good = agent.run("AFTER-INTERRUPT")
            self.assertIs(good.raise_on_error(), good)

    def test_limits_end_a_turn(self) -> None:
        for options, code in [({"max_turns": 1}, "max_turns"), ({"max_budget_usd": 0.0001}, "max_budget"), ({"max_total_tokens": 10}, "max_tokens")]:
            with self.subTest(options=options), Agent(cwd=self.project, **options) as agent:  # type: ignore[arg-type]
                result = agent.run("ENDLESSLY")
                self.assertEqual((result.outcome, result.code), ("exhausted", code))

    def test_output_matches_the_schema(self) -> None:
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        with Agent(cwd=self.project, output_schema=schema) as agent:
            self.assertEqual(agent.run("SCHEMA-OBJECT").output, {"city": "Paris", "people": 2100000})

    def test_output_is_an_instance_of_the_type(self) -> None:
        with Agent(cwd=self.project, output_type=City) as agent:
            self.assertEqual(agent.run("SCHEMA-OBJECT").output, City("Paris", 2100000))
        with Agent(cwd=self.project, output_type=list[str]) as agent:
            self.assertEqual(agent.run("SCHEMA-LIST").output, ["one", "two"])

    def test_set_model_applies_to_the_next_turn(self) -> None:
        with Agent(cwd=self.project) as agent:
            agent.run("hello")
            agent.set_model("mock/free")
            self.assertIsNone(agent.run("hello").cost)
            agent.set_model(None)
            self.assertIsNotNone(agent.run("hello").cost)
            with self.assertRaises(haft.ProtocolError):
                agent.set_model("nowhere/nothing")

    def test_builtin_tools_limits_the_offer(self) -> None:
        events = list(query("hello", cwd=self.project, builtin_tools=["read_file"]))
        started = events[0]
        assert isinstance(started, haft.Started)
        self.assertEqual(started.tools, ("read_file",))


class ProcessTest(ScriptedTest):
    def test_a_missing_binary_is_named(self) -> None:
        missing = str(self.home / "no-haft")
        with self.assertRaisesRegex(haft.BinaryNotFound, "no-haft .from the option `binary`. is not an executable"):
            Agent(binary=missing).run("hello")
        with self.assertRaisesRegex(haft.BinaryNotFound, "no-haft .from HAFT_BINARY. is not an executable"):
            list(query("hello", env={"HAFT_BINARY": missing}))
        with self.assertRaisesRegex(haft.BinaryNotFound, "no haft binary in .* or on PATH"):
            list(query("hello", env={"HAFT_BINARY": "", "PATH": str(self.home)}))
        broken = self.home / "broken"
        broken.write_bytes(b"\x7fELF nothing")
        broken.chmod(0o755)
        with self.assertRaisesRegex(haft.BinaryNotFound, "cannot be started"):
            list(query("hello", binary=broken))

    def test_an_early_end_contains_the_last_lines_of_stderr(self) -> None:
        with Agent(cwd=self.project, model="nowhere/nothing") as agent, self.assertRaises(haft.ProcessEnded) as caught:
            agent.run("hello")
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertIn("nowhere", caught.exception.stderr)
        self.assertIn("nowhere", str(caught.exception))

    def test_a_program_that_is_not_haft_is_an_error(self) -> None:
        script = self.home / "program"
        script.write_text("#!/bin/sh\necho hello\necho first >&2\necho last >&2\nexit 7\n")
        script.chmod(0o755)
        with self.assertLogs("haft", logging.WARNING), self.assertRaises(haft.ProcessEnded) as caught:
            Agent(binary=script).start()
        self.assertEqual((caught.exception.exit_code, caught.exception.stderr), (7, "first\nlast"))
        script.write_text("#!/bin/sh\nexec sleep 100\n")
        with self.assertRaisesRegex(haft.ProtocolError, "`initialize` within 0.2 s"):
            Agent(binary=script, start_timeout=0.2).start()

    def test_a_killed_process_ends_the_run(self) -> None:
        with Agent(cwd=self.project) as agent:
            events = agent.stream("COUNT-SLOWLY")
            next(events)
            connection = agent._agent._connection
            assert connection is not None
            os.kill(connection.pid, signal.SIGKILL)
            with self.assertRaisesRegex(haft.ProcessEnded, "signal 9"):
                list(events)
            with self.assertRaises(haft.ProcessEnded):
                agent.run("hello")

    def test_a_missing_folder_is_named(self) -> None:
        with self.assertRaisesRegex(NotADirectoryError, "nowhere"):
            Agent(cwd=self.project / "nowhere").run("hello")

    def test_close_ends_a_running_turn(self) -> None:
        agent = Agent(cwd=self.project, permission_mode="yolo")
        for event in agent.stream("RUN-SLEEP"):
            if isinstance(event, haft.ToolCall):
                agent.close()
                break
        self.assertEqual(self.haft_processes(), [])
        agent.close()
        with self.assertRaisesRegex(haft.HaftError, "closed"):
            agent.run("hello")

    def test_close_in_another_thread_ends_the_call(self) -> None:
        agent = Agent(cwd=self.project)
        closing = call_when_started(agent, agent.close)
        try:
            self.assertEqual(agent.run("COUNT-SLOWLY", timeout=60).outcome, "aborted")
        except haft.RunTimeout:
            raise
        except haft.HaftError:
            pass
        closing.join()
        self.assertEqual(self.haft_processes(), [])

    def test_a_blocked_callback_does_not_block_close(self) -> None:
        asked, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        def decide(request: PermissionRequest) -> Decision:
            asked.set()
            release.wait()
            return True

        def interrupt_when_asked() -> None:
            asked.wait()
            agent.interrupt()

        with Agent(cwd=self.project, permission=decide) as agent:
            interrupting = threading.Thread(target=interrupt_when_asked)
            interrupting.start()
            self.assertEqual(agent.run("WRITE-A", timeout=60).outcome, "aborted")
        self.assertEqual(self.haft_processes(), [])
        self.assertFalse((self.project / "a.txt").exists())

    def run_program(self, body: str, *, end_with: signal.Signals | None) -> tuple[int, str]:
        """Runs a program that prints `ready` during a turn, and sends a signal to it."""
        program = self.home / "program.py"
        program.write_text(f"import sys\nsys.path.insert(0, {str(SOURCES)!r})\n{body}")
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                [sys.executable, program], cwd=self.project, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline(), "ready\n")
            if end_with is not None:
                self.assertEqual(len(self.haft_processes()), 1)
                process.send_signal(end_with)
            process.wait(60)
            process.stdout.close()
            errors.seek(0)
            return process.returncode, errors.read()

    SYNC_TURN = """
for event in agent.stream("COUNT-SLOWLY"):
    if isinstance(event, Started):
        print("ready", flush=True)
"""

    def test_ctrl_c_leaves_no_process(self) -> None:
        inner = self.SYNC_TURN.replace("\n", "\n    ")
        for name, body in [
            ("with", f"from haft import *\nwith Agent() as agent:\n    {inner}"),
            ("without `with`", f"from haft import *\nagent = Agent()\n{self.SYNC_TURN}"),
            ("query", 'from haft import *\nfor event in query("COUNT-SLOWLY"):\n    if isinstance(event, Started):\n        print("ready", flush=True)'),
            (
                "asyncio",
                "import asyncio\nfrom haft import *\nasync def main():\n    async with AsyncAgent() as agent:\n"
                '        async for event in agent.stream("COUNT-SLOWLY"):\n            if isinstance(event, Started):\n'
                '                print("ready", flush=True)\nasyncio.run(main())',
            ),
        ]:
            with self.subTest(name=name):
                code, errors = self.run_program(body, end_with=signal.SIGINT)
                self.assertIn(code, (-signal.SIGINT, 130), errors)
                self.assertTrue(errors.strip().endswith("KeyboardInterrupt"), errors)
                self.assertNotIn("never awaited", errors)
                self.assertNotIn("never retrieved", errors)
                self.assert_no_haft_left()

    def test_an_agent_that_is_not_closed_ends_with_the_program(self) -> None:
        code, errors = self.run_program("from haft import *\nagent = Agent()\nagent.start()\nprint('ready', flush=True)", end_with=None)
        self.assertEqual((code, errors), (0, ""))
        self.assert_no_haft_left()

    def test_a_killed_program_leaves_no_idle_process(self) -> None:
        body = "import time\nfrom haft import *\nagent = Agent()\nagent.start()\nprint('ready', flush=True)\ntime.sleep(60)"
        self.run_program(body, end_with=signal.SIGKILL)
        self.assert_no_haft_left()


if __name__ == "__main__":
    unittest.main()
