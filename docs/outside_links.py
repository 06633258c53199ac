"""Preprocessor of the book (book.toml): links out of docs/ become addresses of the repository.

mdBook calls it with `supports RENDERER`, or gives it the book as JSON on standard input.
"""

import json
import re
import sys

ADDRESS = "https://github.com/haft-agent/haft/blob/main/"


def mend(section):
    chapter = section.get("Chapter") if isinstance(section, dict) else None
    if chapter:
        chapter["content"] = re.sub(r"\]\(\.\./", "](" + ADDRESS, chapter["content"])
        for inner in chapter["sub_items"]:
            mend(inner)


if sys.argv[1:2] != ["supports"]:
    _, book = json.load(sys.stdin)
    for section in book.get("items", book.get("sections", [])):
        mend(section)
    json.dump(book, sys.stdout)
