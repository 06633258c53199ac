"""The asynchronous agent, against the scripted model with the real binary."""

from __future__ import annotations

import asyncio
import threading
import unittest
from collections.abc import Callable, Coroutine
from typing import Any

import haft
from haft import AsyncAgent, Decision, Deny, PermissionRequest, query_async, tool
from scripted import ScriptedTest


async def wait_for_start(agent: AsyncAgent) -> None:
    """Waits until the first turn has started."""
    while agent.session_id is None:
        await asyncio.sleep(0.01)


class AsyncTest(ScriptedTest):
    def run_async(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs a test. Errors that nobody awaits are failures."""
        problems: list[dict[str, Any]] = []

        async def main() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
            async with asyncio.timeout(180):
                await function()

        asyncio.run(main(), debug=True)
        self.assertEqual(problems, [])
        self.assert_no_haft_left()

    def test_query_async_yields_events(self) -> None:
        async def main() -> None:
            events = [event async for event in query_async("hello", cwd=self.project)]
            self.assertIsInstance(events[0], haft.Started)
            self.assertIn(haft.Text("A short answer."), events)
            self.assertIsInstance(events[-1], haft.Result)
            self.assertEqual(self.haft_processes(), [])

        self.run_async(main)

    def test_turns_of_one_conversation(self) -> None:
        async def main() -> None:
            async with AsyncAgent(cwd=self.project) as agent:
                self.assertEqual((await agent.run("my name is Ada")).text, "Hello, Ada.")
                self.assertEqual((await agent.run("What is my name?")).text, "Your name is Ada.")
                session_id = agent.session_id
                assert session_id is not None and agent.cost is not None
                self.assertGreater(agent.cost, 0)
            async with AsyncAgent(cwd=self.project, resume=session_id) as agent:
                self.assertEqual((await agent.run("What is my name?")).text, "Your name is Ada.")

        self.run_async(main)

    def test_agents_run_at_the_same_time(self) -> None:
        async def main() -> None:
            async def ask(name: str) -> str:
                folder = self.project / name
                folder.mkdir()
                async with AsyncAgent(cwd=folder) as agent:
                    return (await agent.run("hello")).text

            texts = await asyncio.gather(*(ask(name) for name in "abc"))
            self.assertEqual(texts, ["A short answer."] * 3)

        self.run_async(main)

    def test_callbacks_run_in_the_event_loop_or_in_a_thread(self) -> None:
        async def main() -> None:
            here, threads = threading.get_ident(), []
            asked, answered = asyncio.Event(), threading.Event()
            loop = asyncio.get_running_loop()

            @tool
            async def add(a: int, b: int) -> str:
                """Adds."""
                threads.append(threading.get_ident())
                return f"sum: {a + b}"

            def decide(request: PermissionRequest) -> Decision:
                threads.append(threading.get_ident())
                loop.call_soon_threadsafe(asked.set)
                # A blocked event loop would never answer.
                self.assertTrue(answered.wait(60))
                return Deny("not in this folder")

            async def answer() -> None:
                await asked.wait()
                answered.set()

            async with AsyncAgent(cwd=self.project, tools=[add], permission=decide) as agent:
                self.assertEqual((await agent.run("CALL-ADD")).text, "The sum is 5.")
                _, result = await asyncio.gather(answer(), agent.run("WRITE-A"))
            self.assertEqual(result.text, "It was denied.")
            self.assertEqual(threads[0], here)
            self.assertNotEqual(threads[1], here)

        self.run_async(main)

    def test_a_canceled_task_leaves_no_process(self) -> None:
        async def main() -> None:
            for delay in (0.0, 0.005, 0.05, 0.15, 1.0):
                with self.subTest(delay=delay):

                    async def work() -> None:
                        async with AsyncAgent(cwd=self.project) as agent:
                            await agent.run("COUNT-SLOWLY")

                    task = asyncio.create_task(work())
                    await asyncio.sleep(delay)
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                    self.assertEqual(self.haft_processes(), [])

        self.run_async(main)

    def test_a_task_that_is_canceled_twice_leaves_no_process(self) -> None:
        async def main() -> None:
            async def work() -> None:
                async with AsyncAgent(cwd=self.project, permission_mode="yolo") as agent:
                    await agent.run("RUN-SLEEP")

            task = asyncio.create_task(work())
            await asyncio.sleep(1)
            task.cancel()
            await asyncio.sleep(0.001)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assert_no_haft_left()

        self.run_async(main)

    def test_a_canceled_run_leaves_the_agent_usable(self) -> None:
        async def main() -> None:
            async with AsyncAgent(cwd=self.project) as agent:
                with self.assertRaises(TimeoutError):
                    async with asyncio.timeout(1):
                        await agent.run("COUNT-SLOWLY")
                self.assertEqual((await agent.run("AFTER-INTERRUPT")).text, "I go on.")

        self.run_async(main)

    def test_a_dropped_iterator_interrupts_its_turn(self) -> None:
        async def main() -> None:
            async with AsyncAgent(cwd=self.project) as agent:
                async for _ in agent.stream("COUNT-SLOWLY"):
                    break
                self.assertEqual((await agent.run("AFTER-INTERRUPT")).text, "I go on.")
            async for _ in query_async("COUNT-SLOWLY", cwd=self.project):
                break

        self.run_async(main)

    def test_interrupt_ends_the_turn(self) -> None:
        async def main() -> None:
            async with AsyncAgent(cwd=self.project) as agent:
                running = asyncio.create_task(agent.run("COUNT-SLOWLY"))
                await wait_for_start(agent)
                await agent.interrupt()
                self.assertEqual((await running).outcome, "aborted")

        self.run_async(main)

    def test_a_canceled_turn_cancels_its_tool(self) -> None:
        async def main() -> None:
            started, canceled = asyncio.Event(), asyncio.Event()

            @tool
            async def sleep() -> None:
                """Sleeps."""
                started.set()
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    canceled.set()
                    raise

            async with AsyncAgent(cwd=self.project, tools=[sleep]) as agent:
                running = asyncio.create_task(agent.run("CALL-SLEEP"))
                await started.wait()
                await agent.interrupt()
                self.assertEqual((await running).outcome, "aborted")
                async with asyncio.timeout(10):
                    await canceled.wait()

        self.run_async(main)

    def test_two_turns_at_a_time_are_an_error(self) -> None:
        async def main() -> None:
            async with AsyncAgent(cwd=self.project) as agent:
                running = asyncio.create_task(agent.run("COUNT-SLOWLY"))
                await wait_for_start(agent)
                with self.assertRaisesRegex(haft.HaftError, "already running a turn"):
                    await agent.run("hello")
                await agent.interrupt()
                await running

        self.run_async(main)

    def test_errors_are_those_of_the_synchronous_agent(self) -> None:
        async def main() -> None:
            async with AsyncAgent(cwd=self.project, model="nowhere/nothing") as agent:
                with self.assertRaisesRegex(haft.ProcessEnded, "no provider `nowhere`"):
                    await agent.run("hello")
            with self.assertRaises(haft.BinaryNotFound):
                async with AsyncAgent(binary=self.home / "no-haft"):
                    pass
            with self.assertRaisesRegex(haft.HaftError, "closed"):
                await agent.run("hello")

        self.run_async(main)


if __name__ == "__main__":
    unittest.main()
