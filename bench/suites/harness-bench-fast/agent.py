"""Solves one task of harness-bench-fast with haft and the scripted model: `agent.py CONFIGURATION PROMPT`, in the task's folder.

The suite's `run-cli` starts it. `agent.py SUITE` lists the tasks. The calls are derived from the suite's own solution: both states of the folder are made in
a temporary folder, and their difference becomes calls of one editing tool and commands.
"""

import base64
import json
import os
import pathlib
import re
import shlex
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import edits
import session

MAX_READ_FILES = 20


def take_snapshot(folder):
    """Returns the content of each file below `folder`, and None for each folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        try:
            found[str(path.relative_to(folder))] = None if path.is_dir() else path.read_bytes()
        except PermissionError:
            found[str(path.relative_to(folder))] = b""
    return found


def decode(data):
    """Returns the text of a file, or None if it is binary."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def take_snapshots(task):
    """Returns the files of a task before and after the suite's own solution."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        task.setup(folder)
        before = take_snapshot(folder)
        task.apply_gold(folder)
        return before, take_snapshot(folder)


def changes_text(task):
    """Returns true if the solution changes or removes an existing text file."""
    before, after = take_snapshots(task)
    return any(data is not None and decode(data) is not None and after.get(path) != data for path, data in before.items())


def find_differences(before, after, start, end):
    """Returns the paths whose content in `end` is not what the solution makes of `start`.

    The content of some files depends on the folder, so `start` and `before` differ in files that the solution leaves alone.
    """
    expected = {path: data for path, data in start.items() if path in after or path not in before}
    expected |= {path: data for path, data in after.items() if path not in before or before[path] != data}
    return sorted(
        path for path in expected.keys() | end.keys()
        if (path in expected, expected.get(path)) != (path in end, end.get(path)) and "__pycache__" not in path
    )


def plan_groups(before, after, tool):
    """Returns groups of calls that read the project, delete, edit, and run commands, and the paths not written by `tool`."""
    changes, removed, gone, commands = [], [], [], []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new and (path in before) == (path in after):
            continue
        if path not in after:
            if old is None:
                removed.append(f"rm -rf {shlex.quote(path)}")
                gone.append(f"{path}/")
            elif path.startswith(tuple(gone)) and tool != "apply_patch":
                continue
            elif tool == "apply_patch" and decode(old) is not None:
                changes.append((path, decode(old), None))
            else:
                removed.append(f"rm -f {shlex.quote(path)}")
        elif new is None and not any(other.startswith(f"{path}/") for other in after):
            commands.append(f"mkdir -p {shlex.quote(path)}")
        elif new is None:
            continue
        elif decode(new) is None or (old and decode(old) is None):
            commands.append(f"base64 -d > {shlex.quote(path)} <<'END'\n{base64.encodebytes(new).decode()}END")
        else:
            changes.append((path, decode(old) if path in before else None, decode(new)))
    changed = [path for path, old, _ in changes if old is not None]
    others = [path for path, data in before.items() if data and path not in changed and decode(data) is not None]
    reads = [("list_files", {"path": ".", "recursive": True})]
    reads += [("read_file", {"path": path}) for path in changed + others[:max(0, MAX_READ_FILES - len(changed))]]
    if after.get("solve.sh"):
        commands.append("bash solve.sh")
    if any(re.search(r"(^|/)(test_[^/]*|[^/]*_test)\.py$", path) for path in after):
        commands.append("python -m pytest -q -p no:cacheprovider")
    calls, unsuited = edits.plan_calls(tool, changes)
    run = [("execute_command", {"command": command, "requires_approval": False}) for command in commands]
    remove = [("execute_command", {"command": " && ".join(removed), "requires_approval": False})] if removed else []
    # Sections of a patch that delete files must come before folders are removed.
    order = [reads, calls, remove, run] if tool == "apply_patch" else [reads, remove, calls, run]
    return order, unsuited


def list_tasks(suite):
    """Prints the ids of all tasks and whether the task changes existing texts, as JSON."""
    sys.path.insert(0, suite)
    from harness_bench.tasks import ALL_TASKS

    print(json.dumps({task.id: changes_text(task) for task in ALL_TASKS}))


def main():
    if len(sys.argv) == 2:
        list_tasks(sys.argv[1])
        return
    configuration, prompt = json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2]
    sys.path.insert(0, configuration["suite"])
    from harness_bench.tasks import get_task

    project = pathlib.Path.cwd()
    task = get_task(re.search(r"hb_cli_(task_\w+)_\w{8}$", project.name).group(1))
    before, after = take_snapshots(task)
    groups, unsuited = plan_groups(before, after, configuration["tool"])
    start = take_snapshot(project)
    folder = pathlib.Path(configuration["folder"]) / f"{configuration['tool']}-{task.id}"
    search_path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    outcome = session.run_haft(
        configuration["haft"], configuration["model"], folder, project, session.make_turns(groups), prompt, configuration["mode"], search_path,
    )
    (folder / "outcome.json").write_text(json.dumps(outcome | {"unsuited": unsuited, "different": find_differences(before, after, start, take_snapshot(project))}))


if __name__ == "__main__":
    main()
