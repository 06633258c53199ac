"""Expresses changes of text files as calls of one of haft's editing tools."""

import difflib
import re

TOOLS = ["write_to_file", "edit_file", "multi_edit", "replace_in_file", "apply_patch"]
# Lines that separate the parts of a block of `replace_in_file`.
SEPARATOR = re.compile(r"(<{7} SEARCH|={7}|>{7} REPLACE)\s*$")


def split_lines(text):
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def find_hunks(old, new):
    """Returns the changed places as lists of old and new lines, each with enough lines around it to fit one place only."""
    before, after = split_lines(old), split_lines(new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    hunks = [list(opcode[1:]) for opcode in matcher.get_opcodes() if opcode[0] != "equal"]
    while True:
        merged = []
        for hunk in hunks:
            if merged and hunk[0] <= merged[-1][1]:
                merged[-1][1], merged[-1][3] = max(merged[-1][1], hunk[1]), max(merged[-1][3], hunk[3])
            else:
                merged.append(hunk)
        hunks, grown = merged, False
        for hunk in hunks:
            text = "".join(before[hunk[0]:hunk[1]])
            if hunk[1] - hunk[0] < len(before) and (not text or old.find(text) != old.rfind(text)):
                up, down = min(1, hunk[0]), min(1, len(before) - hunk[1])
                hunk[0], hunk[2], hunk[1], hunk[3] = hunk[0] - up, hunk[2] - up, hunk[1] + down, hunk[3] + down
                grown = True
        if not grown:
            return [(before[a:b], after[c:d]) for a, b, c, d in hunks]


def find_replacements(old, new):
    """Returns pairs of old and new text that apply one after another, or None if the file is empty."""
    pairs, current = [], old
    for before, after in reversed(find_hunks(old, new)):
        pair = "".join(before), "".join(after)
        if not pair[0]:
            return None
        if current.count(pair[0]) != 1:
            return [(old, new)]
        pairs.append(pair)
        current = current.replace(*pair)
    assert current == new
    return pairs


def ends_alike(old, new):
    return old.endswith("\n") == new.endswith("\n")


def format_blocks(old, new):
    if not old or not new or not ends_alike(old, new):
        return None
    parts = []
    for before, after in find_hunks(old, new):
        if any(SEPARATOR.match(line) for line in before + after):
            return None
        ended = ["".join(line if line.endswith("\n") else line + "\n" for line in side) for side in (before, after)]
        parts.append(f"<<<<<<< SEARCH\n{ended[0]}=======\n{ended[1]}>>>>>>> REPLACE\n")
    return "".join(parts)


def format_patch_section(path, old, new):
    """Returns one file's section of a patch, or None if the format can't express the change."""
    if new is None:
        return f"*** Delete File: {path}\n"
    if old is None:
        return f"*** Add File: {path}\n" + "".join(f"+{line}" for line in split_lines(new)) if new.endswith("\n") else None
    if not old or not new or not ends_alike(old, new):
        return None
    section = f"*** Update File: {path}\n"
    for before, after in find_hunks(old, new):
        section += "@@\n"
        for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            kept, removed, added = (before[a:b], [], []) if kind == "equal" else ([], before[a:b], after[c:d])
            for sign, lines in ((" ", kept), ("-", removed), ("+", added)):
                section += "".join(sign + (line if line.endswith("\n") else line + "\n") for line in lines)
    return section


def plan_calls(tool, changes):
    """Returns the calls that make `changes`, and the paths that `tool` can't write and `write_to_file` writes instead.

    `changes` are triples of path, old and new text; a text is None if the file does not exist. Only `apply_patch` deletes.
    """
    calls, others, edits, sections = [], [], [], []
    for path, old, new in changes:
        if tool == "apply_patch" and (section := format_patch_section(path, old, new)):
            sections.append(section)
        elif new is None:
            raise ValueError(f"{tool} can't delete {path}")
        elif tool == "multi_edit" and (pairs := [("", new)] if old is None and new else find_replacements(old or "", new)):
            edits += [{"path": path, "old_string": before, "new_string": after} for before, after in pairs]
        elif tool == "edit_file" and old and (pairs := find_replacements(old, new)):
            calls += [(tool, {"path": path, "old_text": before, "new_text": after}) for before, after in pairs]
        elif tool == "replace_in_file" and old and (diff := format_blocks(old, new)):
            calls.append((tool, {"path": path, "diff": diff}))
        else:
            calls.append(("write_to_file", {"path": path, "content": new}))
            # `edit_file` and `replace_in_file` change existing files only, so their new files are no exception.
            if tool in ("multi_edit", "apply_patch") or (old is not None and tool != "write_to_file"):
                others.append(path)
    if edits:
        calls.append((tool, {"edits": edits}))
    if sections:
        calls.append((tool, {"patch": "*** Begin Patch\n" + "".join(sections) + "*** End Patch\n"}))
    return calls, others
