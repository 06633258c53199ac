"""Runs the haft binary in a home and a project of its own and reads what it tells."""

import json
import os
import pathlib
import subprocess
import tempfile


class Place:
    """A home and a project; `with Place(...) as place` removes them at the end."""

    def __init__(self, haft, api, base_url, model="test-model", window=200_000, output=8192, model_keys="", more="", key="sk-mock"):
        self.haft, self.key = haft, key
        self.config = f"""model = "mock/{model}"
[providers.mock]
api = "{api}"
base_url = "{base_url}"
api_key_env = "MOCK_KEY"
[models."mock/{model}"]
context_window = {window}
max_output_tokens = {output}
{model_keys}
[retry]
base_delay_ms = 5
{more}
"""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="haft-third-")
        root = pathlib.Path(self.folder.name)
        self.home, self.project = root / "home", root / "project"
        self.home.mkdir()
        self.project.mkdir()
        (self.home / "config.toml").write_text(self.config)
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def run(self, *arguments, seconds=240):
        """One run; gives its exit code, its events and what it said on stderr."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "HAFT_HOME": str(self.home), "MOCK_KEY": self.key}
        command = [self.haft, "run", "--output-format", "stream-json", "--permission-mode", "yolo", *arguments]
        ran = subprocess.run(command, cwd=self.project, env=environment, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)
        events = [json.loads(line) for line in ran.stdout.splitlines() if line.strip()]
        return Ran(ran.returncode, events, ran.stderr)


class Ran:
    def __init__(self, code, events, stderr):
        self.code, self.events, self.stderr = code, events, stderr
        self.result = events[-1] if events else {}

    def of(self, kind):
        return [event for event in self.events if event.get("type") == kind]

    def __str__(self):
        return f"exit code {self.code}; {json.dumps(self.result)[:800]}\n       {self.stderr.strip()[:800]}"


class Checks:
    """Says how each check went and counts those that failed."""

    failed = 0

    def check(self, what, held, ran):
        print(f"{'ok    ' if held else 'FAILED'} {what}", flush=True)
        if not held:
            self.failed += 1
            print(f"       {ran}", flush=True)
