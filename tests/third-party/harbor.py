#!/usr/bin/env python3
"""Conversations that haft exports in ATIF are valid for Harbor's own validator, and are imported again.

usage: harbor.py HAFT FOLDER    FOLDER: Harbor's package, unpacked

The conversations are the fixtures of haft's importers, so they come from all agents that haft knows.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

haft, package = sys.argv[1:]
sys.path.insert(0, package)
from harbor.utils.trajectory_validator import TrajectoryValidator  # noqa: E402

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "crates/extensions/imports/fixtures"


def run(home, *words):
    environment = {**os.environ, "HAFT_HOME": str(home)}
    done = subprocess.run([haft, *map(str, words)], env=environment, cwd=home, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"haft {words}: {done.stdout}{done.stderr}")
    return done.stdout


def export(home, folder, form):
    run(home, "conversations", "export", "--all", folder, "--format", form)
    names = {"namespaces.json", "current_conversations.json"}
    return {path.name: json.loads(path.read_text()) for path in folder.glob("*.json") if path.name not in names}


def main():
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        first, second = work / "first", work / "second"
        first.mkdir()
        second.mkdir()
        inputs = [path for path in FIXTURES.glob("*/input.*") if path.suffix in (".json", ".jsonl")]
        run(first, "conversations", "import", *inputs)
        trajectories = export(first, work / "atif", "atif")
        stored = export(first, work / "documents", "document")
        stored = {name: one for name, one in stored.items() if one["messages"]}
        if trajectories.keys() != stored.keys() or len(stored) < 20:
            sys.exit(f"{len(stored)} conversations gave {len(trajectories)} trajectories")
        images = 0
        for name in trajectories:
            validator = TrajectoryValidator()
            if not validator.validate(work / "atif" / name):
                sys.exit(f"{name}: {validator.errors}")
            images += trajectories[name]["steps"].__str__().count("media_type")
        run(second, "conversations", "import", work / "atif")
        again = export(second, work / "again", "document")
        for name, one in stored.items():
            counts = len(one["messages"]), len(again[name]["messages"])
            if counts[0] != counts[1]:
                sys.exit(f"{name}: {counts[0]} messages were exported and {counts[1]} imported")
        print(f"harbor: {len(trajectories)} trajectories with {images} images are valid, and imported again")


main()
