//! Changes of files as rows.

use serde_json::Value;

use crate::line::{Line, Tone};
use crate::wrap::chop;

/// The rows of a unified diff, or of text that may hold one.
pub(crate) fn rows<'a>(lines: impl Iterator<Item = &'a str>, columns: usize) -> Vec<Line> {
    lines.flat_map(|line| chop(&Line::of(line, tone(line)), columns)).collect()
}

/// Whether the text holds a unified diff.
pub(crate) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ -"))
}

fn tone(line: &str) -> Tone {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Tone::Strong,
        [b'+', ..] => Tone::Added,
        [b'-', ..] => Tone::Removed,
        [b'@', b'@', ..] => Tone::Accent,
        _ => Tone::Plain,
    }
}

/// What a call would write, in lines that begin with `+` and `-`; none where its arguments are better shown as they are.
///
/// Nothing of the arguments is left out: somebody is to agree to it.
pub(crate) fn preview(tool: &str, arguments: &Value) -> Option<String> {
    let fields = arguments.as_object()?;
    let only = |names: &[&str]| fields.keys().all(|name| names.contains(&name.as_str()));
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    match tool {
        "write_to_file" if only(&["path", "content"]) => {
            Some(format!("+++ {}\n{}", text("path")?, marked('+', text("content")?)))
        }
        "multi_edit" if only(&["edits"]) => {
            let edits = arguments.get("edits")?.as_array()?;
            edits.iter().map(edit).collect::<Option<Vec<_>>>().map(|edits| edits.join(""))
        }
        _ => None,
    }
}

fn edit(edit: &Value) -> Option<String> {
    let fields = edit.as_object()?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let every = match fields.get("replace_all") {
        None | Some(Value::Null | Value::Bool(false)) => "",
        Some(Value::Bool(true)) => " (every place)",
        Some(_) => return None,
    };
    let known = ["path", "old_string", "new_string", "replace_all"];
    if !fields.keys().all(|name| known.contains(&name.as_str())) {
        return None;
    }
    let (path, old, new) = (text("path")?, text("old_string")?, text("new_string")?);
    Some(format!("+++ {path}{every}\n{}{}", marked('-', old), marked('+', new)))
}

fn marked(mark: char, text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        out.push(mark);
        out.push_str(line);
    }
    if !text.is_empty() && !text.ends_with('\n') {
        out.push_str("\n\\ no line break at the end\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_would_be_written_is_shown_whole() {
        let shown = preview("write_to_file", &json!({"path": "a.txt", "content": "one\n\ntwo"})).unwrap();
        assert_eq!(shown, "+++ a.txt\n+one\n+\n+two\n\\ no line break at the end\n");
        let edit = json!({"edits": [{"path": "a", "old_string": "x\n", "new_string": "y\nz\n", "replace_all": true}]});
        assert_eq!(preview("multi_edit", &edit).unwrap(), "+++ a (every place)\n-x\n+y\n+z\n");
    }

    #[test]
    fn what_it_does_not_know_it_does_not_leave_out() {
        assert_eq!(preview("write_to_file", &json!({"path": "a", "content": "x", "mode": "0777"})), None);
        let edit = json!({"edits": [{"path": "a", "old_string": "x", "new_string": "y", "then": "z"}]});
        assert_eq!(preview("multi_edit", &edit), None);
        assert_eq!(preview("execute_command", &json!({"command": "ls"})), None);
    }

    #[test]
    fn lines_of_a_diff_have_their_tones() {
        let text = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z";
        let tones: Vec<_> = rows(text.lines(), 40).iter().map(|row| row.spans()[0].tone()).collect();
        assert_eq!(tones, [Tone::Strong, Tone::Strong, Tone::Accent, Tone::Removed, Tone::Added, Tone::Plain]);
        assert!(is_diff(text) && !is_diff("+ not one"));
    }
}
