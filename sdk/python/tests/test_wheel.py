"""The wheel of a release, with a program in place of the binary that starts the real one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tomllib
import types
import unittest
from unittest import mock

from scripted import HERE, ScriptedTest

REPOSITORY = HERE.parent.parent.parent
PROGRAM = """
import haft, os, sys
assert haft.__file__.startswith(sys.prefix), haft.__file__
print([event.text for event in haft.query("hello") if isinstance(event, haft.Result)])
"""


def load_wrappers() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("wrappers", REPOSITORY / "packaging" / "wrappers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(os.environ, SOURCE_DATE_EPOCH="1700000000"):
        spec.loader.exec_module(module)
    return module


class WheelTest(ScriptedTest):
    def test_the_wheel_has_the_package_and_the_binary(self) -> None:
        tree, out = self.home / "tree", self.home / "out"
        (tree / "bin").mkdir(parents=True)
        out.mkdir()
        (tree / "bin/haft").write_text(f'#!/bin/sh\nexec "{self.haft}" "$@"\n')
        (tree / "bin/haft").chmod(0o755)
        wrappers = load_wrappers()
        # The program is a script, from which no version of glibc can be read.
        with mock.patch.object(wrappers, "glibc", lambda _: 17):
            wrappers.wheel("0.2.0", tree, out)
        (wheel,) = out.iterdir()
        venv = self.home / "venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True, capture_output=True)
        install = [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", "--no-index", str(wheel)]
        subprocess.run(install, check=True, capture_output=True)
        self.assertTrue((venv / "bin/haft").is_file())
        environment = {key: value for key, value in self.environment.items() if key != "HAFT_BINARY"}
        ran = subprocess.run(
            [venv / "bin/python", "-c", PROGRAM], cwd=self.project, env=environment, capture_output=True, text=True
        )
        self.assertEqual((ran.stdout, ran.stderr), ("['A short answer.']\n", ""))
        names = {path.name for path in venv.glob("lib/python*/site-packages/haft/*") if path.is_file()}
        self.assertEqual(names, {path.name for path in (HERE.parent / "haft").iterdir() if path.is_file()})

    def test_the_package_has_the_version_of_the_binary(self) -> None:
        declared = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["version"]
        workspace = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        self.assertEqual(declared, workspace)


if __name__ == "__main__":
    unittest.main()
