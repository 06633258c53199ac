"""The tasks: what is asked, in which files, and what must be true afterwards."""

import dataclasses
import hashlib
import pathlib
import subprocess
import tomllib

TASKS = pathlib.Path(__file__).parent / "tasks"
CHECK_SECONDS = 20


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    kind: str
    language: str
    prompt: str
    check: str
    solution: str
    files: dict
    trusted: bool = False

    def changes_files(self):
        return self.kind in ("create", "change", "several")

    def lay_out(self, workspace):
        for path, text in self.files.items():
            target = workspace / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.removeprefix("\n"), encoding="utf-8")

    def is_solved(self, workspace, answer):
        """The check runs in the workspace, where the agent never saw it."""
        kept = workspace.parent / "answer.txt"
        kept.write_text(answer, encoding="utf-8")
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "ANSWER": str(kept), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
        return shell(self.check, workspace, environment).returncode == 0

    def second_prompt(self, workspace):
        return None

    def solve(self, workspace):
        """The reference solution; gives its answer."""
        return shell(self.solution, workspace, None).stdout


def shell(script, workspace, environment):
    command = ["sh", "-e", "-c", script]
    try:
        return subprocess.run(
            command, cwd=workspace, env=environment, capture_output=True, text=True, timeout=CHECK_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", "")


def tasks(part=""):
    found = []
    for path in sorted(TASKS.glob("*.toml")):
        if part in path.stem:
            declared = tomllib.loads(path.read_text(encoding="utf-8"))
            found.append(Task(name=path.stem, files=declared.pop("files", {}), **declared))
    return found


def fingerprint(workspace):
    """What the files of a workspace hold, as one value; what running Python and pytest leaves behind does not count."""
    digest = hashlib.sha256()
    for path in sorted(workspace.rglob("*")):
        if path.is_file() and not {"__pycache__", ".pytest_cache", ".git"} & set(path.parts):
            digest.update(str(path.relative_to(workspace)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
