//! The changes that a call proposes, as the lines of a diff, read from the call's arguments.

use std::fmt::Write as _;

use serde_json::Value;

/// Returns the lines that a call of `tool` removes (−) and adds (+), or `None` if the call edits no
/// file. The names are those of haft's tools and of the tools of other agents.
pub(super) fn proposed_diff(tool: &str, arguments: &Value) -> Option<String> {
    let text = |value: &Value, names: &[&str]| {
        names
            .iter()
            .find_map(|name| value.get(name)?.as_str())
            .map(str::to_owned)
    };
    let patch = text(arguments, &["patch"])
        .or_else(|| text(arguments, &["input"]).filter(|text| text.contains("*** Begin Patch")));
    if let Some(patch) = patch {
        return Some(patch);
    }
    let mut diff = String::new();
    if let Some(blocks) = text(arguments, &["diff"]) {
        write_blocks(&mut diff, &blocks);
    }
    let edits = arguments.get("edits").and_then(Value::as_array);
    for edit in edits.into_iter().flatten().chain([arguments]) {
        let old = text(edit, &["old_text", "old_string", "old_str", "oldString"]);
        let new = text(edit, &["new_text", "new_string", "new_str", "newString"]);
        if old.is_none() && new.is_none() {
            continue;
        }
        if let Some(path) = text(edit, &["path", "file_path"]).filter(|_| edits.is_some()) {
            // Here and below: writing to a String cannot fail.
            let _ = writeln!(diff, "@@ {path}");
        }
        write_lines(&mut diff, '-', &old.unwrap_or_default());
        write_lines(&mut diff, '+', &new.unwrap_or_default());
    }
    if matches!(
        tool,
        "write_to_file" | "Write" | "write_file" | "create_file"
    ) {
        let content = text(arguments, &["content", "file_text"]);
        write_lines(&mut diff, '+', &content.unwrap_or_default());
    }
    (!diff.is_empty()).then_some(diff)
}

/// Writes blocks of `<<<<<<< SEARCH`, `=======` and `>>>>>>> REPLACE` as removed and added lines.
fn write_blocks(diff: &mut String, blocks: &str) {
    let mut sign = ' ';
    for line in blocks.lines() {
        match line.trim_end() {
            start if start.starts_with("<<<<<<<") || start.ends_with(" SEARCH") => {
                sign = '-';
                diff.push_str("@@\n");
            }
            "=======" if sign == '-' => sign = '+',
            end if sign == '+' && (end.starts_with(">>>>>>>") || end.ends_with(" REPLACE")) => {
                sign = ' ';
            }
            _ => write_lines(diff, sign, line),
        }
    }
}

fn write_lines(diff: &mut String, sign: char, text: &str) {
    for line in text.lines() {
        let _ = writeln!(diff, "{sign}{line}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn proposed_diff_reads_the_arguments_of_common_tools() {
        let blocks = "<<<<<<< SEARCH\na\n=======\nb\nc\n>>>>>>> REPLACE\n";
        let cases = [
            (
                "replace_in_file",
                json!({"path": "x", "diff": blocks}),
                Some("@@\n-a\n+b\n+c\n"),
            ),
            (
                "Edit",
                json!({"file_path": "x", "old_string": "a\nb", "new_string": "c"}),
                Some("-a\n-b\n+c\n"),
            ),
            (
                "edit_file",
                json!({"edits": [{"path": "x", "old_text": "a", "new_text": "b"}, {"path": "y", "new_text": "c"}]}),
                Some("@@ x\n-a\n+b\n@@ y\n+c\n"),
            ),
            (
                "write_to_file",
                json!({"path": "x", "content": "a\n\nb"}),
                Some("+a\n+\n+b\n"),
            ),
            (
                "apply_patch",
                json!({"patch": "*** Begin Patch\n+a"}),
                Some("*** Begin Patch\n+a"),
            ),
            ("read_file", json!({"path": "x"}), None),
            (
                "execute_command",
                json!({"command": "ls", "input": "y"}),
                None,
            ),
            ("broken", Value::Null, None),
        ];
        for (tool, arguments, expected) in cases {
            assert_eq!(
                proposed_diff(tool, &arguments).as_deref(),
                expected,
                "{tool}"
            );
        }
    }
}
