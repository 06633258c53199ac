"""A scripted model, and a project with a home of its own, for the tests.

HAFT and SCRIPTED_MODEL name the binaries; the defaults are `haft` and `scripted-model` on PATH.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).parent


def find_program(variable: str, name: str) -> str:
    found = shutil.which(os.environ.get(variable, name))
    if found is None:
        raise unittest.SkipTest(f"no {name}: set {variable}")
    return str(pathlib.Path(found).resolve())


class ScriptedTest(unittest.TestCase):
    """Starts the scripted model once for each class. Each test has a project and a home."""

    server: subprocess.Popen[bytes]
    base_url: str
    haft: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.haft = find_program("HAFT", "haft")
        model = find_program("SCRIPTED_MODEL", "scripted-model")
        folder = tempfile.TemporaryDirectory(prefix="haft-sdk-")
        cls.addClassCleanup(folder.cleanup)
        urls = pathlib.Path(folder.name, "urls")
        with urls.open("wb") as out, pathlib.Path(folder.name, "refused").open("wb") as errors:
            cls.server = subprocess.Popen([model, HERE / "script.yaml"], stdout=out, stderr=errors)
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.terminate)
        while not urls.read_text().endswith("\n"):
            time.sleep(0.02)
        cls.base_url = next(word.split("=", 1)[1] for word in urls.read_text().split() if word.startswith("anthropic="))

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="haft-sdk-")
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name).resolve()
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir()
        self.home.mkdir()
        models = "".join(
            f'[models."mock/{name}"]\ncontext_window = 200000\nmax_output_tokens = 8192\n{price}\n'
            for name, price in [("priced", "price = { input = 3.0, output = 15.0 }"), ("free", "")]
        )
        (self.home / "config.toml").write_text(
            f'model = "mock/priced"\n[providers.mock]\napi = "anthropic"\nbase_url = "{self.base_url}"\n'
            f'api_key_env = "MOCK_KEY"\n{models}[retry]\nbase_delay_ms = 5\n'
        )
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HAFT_HOME": str(self.home),
            "MOCK_KEY": "sk-mock",
            "HAFT_BINARY": self.haft,
        }
        # The agent passes this program's environment on.
        before = dict(os.environ)
        os.environ.update(self.environment)
        self.addCleanup(os.environ.update, before)
        self.addCleanup(os.environ.clear)

    def assert_no_haft_left(self, *, within: float = 10.0) -> None:
        """Fails if a haft process of this test is still running."""
        deadline = time.monotonic() + within
        while left := self.haft_processes():
            if time.monotonic() > deadline:
                self.fail(f"haft processes are left: {left}")
            time.sleep(0.02)

    def haft_processes(self) -> list[str]:
        """The command lines of the haft processes that use this test's home."""
        marker, found = f"HAFT_HOME={self.home}".encode(), []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words[0] == self.haft.encode() and marker in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(b" ".join(words).decode())
            except OSError:
                # The process has ended meanwhile.
                continue
        return found
