"""The examples of docs/sdk.md: each block of Python is run, and prints the block of text after it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import unittest

import haft
from examples import PAGE, read_examples
from scripted import ScriptedTest


class DocsTest(ScriptedTest):
    def test_examples_print_what_the_page_shows(self) -> None:
        examples = read_examples()
        self.assertGreaterEqual(len(examples), 8)
        (self.project / "one.txt").write_text("1\n")
        (self.project / "two.txt").write_text("2\n")
        environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(haft.__file__).parent.parent), "PYTHONUTF8": "1"}
        for code, shown in examples:
            with self.subTest(code=code):
                command = [sys.executable, "-W", "error", "-c", code]
                ran = subprocess.run(
                    command, cwd=self.project, env=environment, capture_output=True, text=True, timeout=60
                )
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                self.assertEqual(ran.stdout, shown)

    def test_the_page_names_every_option_and_error(self) -> None:
        page = PAGE.read_text(encoding="utf-8")
        for name in haft.Options.__annotations__:
            self.assertIn(f"`{name}`", page)
        for name in haft.__all__:
            value = getattr(haft, name)
            if isinstance(value, type) and issubclass(value, haft.HaftError):
                self.assertIn(f"`{name}`", page)


if __name__ == "__main__":
    unittest.main()
