"""The tasks of two public suites, for a real model: harness-bench-fast, and the Python exercises of Aider's polyglot benchmark.

A suite is a checkout, which docs/benchmarks.md names with its commit. Its own programs and tests decide what is solved.
"""

import dataclasses
import importlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

# The texts of Aider's benchmark around the instructions of an exercise, and before the second try.
TASK = """
####

Use the above instructions to modify the supplied files: {files}
Don't change the names of existing functions or classes, as they may be referenced from other code like unit tests, etc.
Only use standard libraries, don't suggest installing any packages.
"""
SECOND = """{errors}

####

See the testing errors above.
The tests are correct, don't try and change them.
Fix the code in {files} to resolve the errors.
"""
ERROR_LINES = 50
TEST_SECONDS = 60


@dataclasses.dataclass
class Harness:
    """A task of harness-bench-fast; it changes files, and instructions in its folder count."""

    inner: object
    name: str
    prompt: str
    kind: str = "harness"
    trusted: bool = True

    def changes_files(self):
        return True

    def lay_out(self, workspace):
        self.inner.setup(workspace)

    def is_solved(self, workspace, answer):
        return self.inner.verify(workspace).passed

    def second_prompt(self, workspace):
        return None


@dataclasses.dataclass
class Exercise:
    """An exercise of the polyglot benchmark. The agent sees the stub, and the tests' output if it needs a second try."""

    folder: pathlib.Path
    name: str
    prompt: str
    solution: list
    tests: list
    kind: str = "polyglot"
    trusted: bool = False

    def changes_files(self):
        return True

    def lay_out(self, workspace):
        copy(self.folder, workspace, self.solution)

    def is_solved(self, workspace, answer):
        return self.test(workspace).returncode == 0

    def second_prompt(self, workspace):
        tested = self.test(workspace)
        errors = "\n".join((tested.stdout + tested.stderr).splitlines()[:ERROR_LINES])
        return SECOND.format(errors=errors, files=" ".join(self.solution))

    def test(self, workspace):
        """Runs the tests beside a copy of the solution, so that the agent never sees them."""
        with tempfile.TemporaryDirectory(prefix="exercise-", ignore_cleanup_errors=True) as folder:
            folder = pathlib.Path(folder)
            copy(workspace, folder, self.solution)
            copy(self.folder, folder, self.tests)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *self.tests]
            try:
                return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TEST_SECONDS, stdin=subprocess.DEVNULL)
            except subprocess.TimeoutExpired:
                return subprocess.CompletedProcess(command, 124, "Tests timed out!", "")


def copy(start, end, paths):
    for path in paths:
        if (start / path).is_file():
            (end / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(start / path, end / path)


def tasks(folder, part=""):
    """The tasks of the suite in this folder with `part` in their name."""
    folder = folder.resolve()
    found = exercises(folder / "python/exercises/practice") if (folder / "python").is_dir() else harness(folder)
    return [task for task in found if part in task.name]


def harness(folder):
    sys.path.insert(0, str(folder))
    return [Harness(task, task.id, task.prompt) for task in importlib.import_module("harness_bench.tasks").ALL_TASKS]


def exercises(folder):
    found = []
    for path in sorted(folder.iterdir()):
        files = json.loads((path / ".meta/config.json").read_text(encoding="utf-8"))["files"]
        texts = [path / ".docs" / name for name in ("introduction.md", "instructions.md", "instructions.append.md")]
        prompt = "".join(text.read_text(encoding="utf-8") for text in texts if text.exists()) + TASK.format(files=" ".join(files["solution"]))
        found.append(Exercise(path, path.name, prompt, files["solution"], files["test"]))
    return found
