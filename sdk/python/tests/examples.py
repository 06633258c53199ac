"""The examples of docs/sdk.md. `examples.py FOLDER` writes each into a file, for a type checker."""

from __future__ import annotations

import pathlib
import re
import shutil
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent.parent / "docs" / "sdk.md"
_EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def read_examples() -> list[tuple[str, str]]:
    """Returns each program of the page with the output that the page shows."""
    return _EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, (code, _) in enumerate(read_examples(), start=1):
        (folder / f"example_{number}.py").write_text(code, encoding="utf-8")
