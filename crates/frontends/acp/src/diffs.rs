//! The file changes of a call, proposed or made, as diffs of the protocol.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{Diff, ToolCallContent};
use haft_text::{show_content_exactly, show_exactly};
use serde_json::Value;

/// The maximum size of a changed file whose text is shown as a diff, in bytes.
const MAX_SHOWN_BYTES: u64 = 256 * 1024;

/// The text that a file had before a call changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileBefore {
    path: PathBuf,
    /// The text of the file, or `None` if the file did not exist.
    text: Option<String>,
}

/// Returns the value of the first name in `names` whose argument is a text. Several names are
/// needed because haft's tools and the classic tools name their arguments differently.
fn find_text_argument(arguments: &Value, names: &[&str]) -> Option<String> {
    names
        .iter()
        .find_map(|name| arguments.get(name)?.as_str())
        .map(str::to_owned)
}

fn find_path_argument(arguments: &Value) -> Option<String> {
    find_text_argument(arguments, &["path", "file_path"])
}

/// Returns the old and the new text of an edit. The old text is `None` if it is missing or empty.
fn parse_edit_texts(edit: &Value) -> (Option<String>, String) {
    let old = find_text_argument(edit, &["old_text", "old_string", "old_str"])
        .filter(|old| !old.is_empty());
    (
        old,
        find_text_argument(edit, &["new_text", "new_string", "new_str"]).unwrap_or_default(),
    )
}

/// Returns the edits in a call's arguments, each with the path of its file. An edit without a path
/// of its own applies to the call's path.
fn list_edits_with_paths(arguments: &Value) -> impl Iterator<Item = (String, &Value)> {
    let edits = arguments
        .get("edits")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    edits.filter_map(|edit| {
        Some((
            find_path_argument(edit).or_else(|| find_path_argument(arguments))?,
            edit,
        ))
    })
}

/// Returns the paths of the files that a call of `tool` would write, as given in `arguments`.
pub(crate) fn list_files_to_write(tool: &str, arguments: &Value) -> Vec<String> {
    match tool {
        "write_to_file" | "Write" | "edit_file" | "Edit" | "str_replace" | "replace_in_file" => {
            find_path_argument(arguments).into_iter().collect()
        }
        "multi_edit" | "MultiEdit" => {
            let mut paths: Vec<_> = list_edits_with_paths(arguments)
                .map(|(path, _)| path)
                .collect();
            paths.dedup();
            paths
        }
        "apply_patch" => {
            let patch = arguments
                .get("patch")
                .or_else(|| arguments.get("input"))
                .and_then(Value::as_str);
            let kinds = [
                "*** Update File: ",
                "*** Add File: ",
                "*** Delete File: ",
                "*** Move to: ",
            ];
            let named = |line: &str| {
                kinds
                    .iter()
                    .find_map(|kind| line.strip_prefix(kind))
                    .map(|path| path.trim().to_owned())
            };
            patch
                .unwrap_or_default()
                .lines()
                .filter_map(named)
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the changes that a call would make, derived from `arguments` alone.
pub(crate) fn derive_proposed_changes(
    tool: &str,
    arguments: &Value,
    cwd: &Path,
) -> Vec<ToolCallContent> {
    let path = find_path_argument(arguments).map(|path| cwd.join(path));
    let diff = |path: PathBuf, old: Option<String>, new: String| {
        ToolCallContent::Diff(Diff::new(path, new).old_text(old))
    };
    match tool {
        "write_to_file" | "Write" => {
            let Some((path, new)) = path.zip(find_text_argument(arguments, &["content"])) else {
                return Vec::new();
            };
            let old = FileBefore::read(path.clone()).and_then(|before| before.text);
            vec![diff(path, old, new)]
        }
        "edit_file" | "Edit" | "str_replace" => {
            let (old, new) = parse_edit_texts(arguments);
            path.map(|path| diff(path, old, new)).into_iter().collect()
        }
        "replace_in_file" => {
            let Some((path, blocks)) = path.zip(find_text_argument(arguments, &["diff"])) else {
                return Vec::new();
            };
            parse_replace_blocks(&blocks)
                .into_iter()
                .map(|(old, new)| diff(path.clone(), Some(old), new))
                .collect()
        }
        "multi_edit" | "MultiEdit" => {
            let one = |(path, edit): (String, &Value)| {
                let (old, new) = parse_edit_texts(edit);
                diff(cwd.join(path), old, new)
            };
            list_edits_with_paths(arguments).map(one).collect()
        }
        _ => Vec::new(),
    }
}

/// A hunk of a unified diff that is being parsed.
#[derive(Default)]
struct DiffHunk {
    old_lines_left: usize,
    new_lines_left: usize,
    old: String,
    new: String,
    /// The first character of the line that was added last. `None` before the first line.
    last_sign: Option<char>,
}

impl DiffHunk {
    /// The marker that follows a last line without a line break.
    const NO_NEWLINE_MARKER: &str = "\\ No newline at end of file";

    /// Parses a hunk header such as `@@ -1,3 +1,4 @@`.
    fn parse_header(line: &str) -> Option<Self> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let count = |range: &str| {
            range
                .split_once(',')
                .map_or(Some(1), |(_, count)| count.parse().ok())
        };
        Some(Self {
            old_lines_left: count(old)?,
            new_lines_left: count(rest.split(' ').next()?)?,
            ..Self::default()
        })
    }

    /// Adds a line of the hunk. Returns `None` if the line does not belong to it.
    fn push_line(&mut self, line: &str) -> Option<()> {
        let sign = line.chars().next()?;
        let text = &line[sign.len_utf8()..];
        let is_marker = line == Self::NO_NEWLINE_MARKER;
        let side = if is_marker { self.last_sign? } else { sign };
        if !matches!(side, ' ' | '+' | '-') {
            return None;
        }
        if matches!(side, ' ' | '-') {
            if is_marker {
                self.old.pop();
            } else {
                self.old_lines_left = self.old_lines_left.checked_sub(1)?;
                self.old.extend([text, "\n"]);
            }
        }
        if matches!(side, ' ' | '+') {
            if is_marker {
                self.new.pop();
            } else {
                self.new_lines_left = self.new_lines_left.checked_sub(1)?;
                self.new.extend([text, "\n"]);
            }
        }
        self.last_sign = (!is_marker).then_some(sign);
        Some(())
    }
}

/// Converts the preview of a call, if it is a unified diff, to the diff format of the protocol.
/// Characters without a visible form are replaced by symbols.
///
/// Returns `None` if `subject` is anything but one complete diff, and for changes that the protocol
/// cannot express: deleted and renamed files, and carriage returns.
pub(crate) fn convert_diff_preview(subject: &str, cwd: &Path) -> Option<Vec<ToolCallContent>> {
    const NO_FILE: &str = "/dev/null";
    let mut diffs = Vec::new();
    let mut lines = subject.lines().peekable();
    while let Some(line) = lines.next() {
        let old = line.strip_prefix("--- ")?;
        let new = lines.next()?.strip_prefix("+++ ")?;
        if new == NO_FILE || (old != new && old != NO_FILE) || subject.contains('\r') {
            return None;
        }
        let mut hunks = 0;
        while let Some(mut hunk) = lines.peek().and_then(|line| DiffHunk::parse_header(line)) {
            lines.next();
            hunks += 1;
            while hunk.old_lines_left + hunk.new_lines_left > 0 {
                hunk.push_line(lines.next()?)?;
            }
            if let Some(remark) = lines.next_if(|line| *line == DiffHunk::NO_NEWLINE_MARKER) {
                hunk.push_line(remark)?;
            }
            let old_text = (old != NO_FILE).then(|| show_content_exactly(&hunk.old).into_owned());
            let path = cwd.join(show_exactly(new).as_ref());
            diffs.push(ToolCallContent::Diff(
                Diff::new(path, show_content_exactly(&hunk.new)).old_text(old_text),
            ));
        }
        if hunks == 0 {
            return None;
        }
    }
    (!diffs.is_empty()).then_some(diffs)
}

/// Parses SEARCH/REPLACE blocks into pairs of old and new text.
fn parse_replace_blocks(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut old = String::new();
    let mut new = String::new();
    let mut section = 0;
    for line in text.split_inclusive('\n') {
        match (section, line.trim_end()) {
            (0, mark) if mark.starts_with("<<<<<<<") => section = 1,
            (1, mark) if mark.starts_with("=======") => section = 2,
            (2, mark) if mark.starts_with(">>>>>>>") => {
                pairs.push((std::mem::take(&mut old), std::mem::take(&mut new)));
                section = 0;
            }
            (1, _) => old.push_str(line),
            (2, _) => new.push_str(line),
            _ => {}
        }
    }
    pairs
}

impl FileBefore {
    /// Reads the current text of a file. Returns `None` if the file is not text or is too large to
    /// be shown.
    pub(crate) fn read(path: PathBuf) -> Option<Self> {
        match std::fs::metadata(&path) {
            Ok(found) if found.is_file() && found.len() <= MAX_SHOWN_BYTES => {
                let text = std::fs::read_to_string(&path).ok()?;
                Some(Self {
                    path,
                    text: Some(text),
                })
            }
            Ok(_) => None,
            Err(_) => Some(Self { path, text: None }),
        }
    }

    /// Returns the difference between this text and the file's current text. Returns `None` if
    /// there is no difference, or if the file can no longer be shown.
    pub(crate) fn diff_to_current(self) -> Option<ToolCallContent> {
        let now = Self::read(self.path.clone())?;
        (now.text != self.text).then(|| {
            ToolCallContent::Diff(
                Diff::new(self.path, now.text.unwrap_or_default()).old_text(self.text),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn written_files_lists_the_files_of_a_call() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n@@\n-x\n+y\n*** Add File: c\n+z\n*** End Patch";
        for (tool, arguments, files) in [
            (
                "write_to_file",
                json!({"path": "a", "content": ""}),
                vec!["a"],
            ),
            (
                "multi_edit",
                json!({"edits": [{"path": "a"}, {"path": "a"}, {"path": "b"}]}),
                vec!["a", "b"],
            ),
            (
                "MultiEdit",
                json!({"file_path": "a", "edits": [{"old_string": "x"}, {"old_string": "y"}]}),
                vec!["a"],
            ),
            (
                "Edit",
                json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
                vec!["a"],
            ),
            (
                "str_replace",
                json!({"path": "a", "old_str": "x", "new_str": "y"}),
                vec!["a"],
            ),
            ("Write", json!({"file_path": "a", "content": ""}), vec!["a"]),
            (
                "apply_patch",
                json!({"patch": patch}),
                vec!["a.rs", "b.rs", "c"],
            ),
            ("read_file", json!({"path": "a"}), vec![]),
            ("write_to_file", json!([1]), vec![]),
        ] {
            assert_eq!(list_files_to_write(tool, &arguments), files, "{tool}");
        }
    }

    #[test]
    fn proposed_changes_are_equal_for_classic_tool_names() {
        let folder = Path::new("/nowhere");
        for (classic, theirs, tool, ours) in [
            (
                "Edit",
                json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
                "edit_file",
                json!({"path": "a", "old_text": "x", "new_text": "y"}),
            ),
            (
                "Write",
                json!({"file_path": "a", "content": "x"}),
                "write_to_file",
                json!({"path": "a", "content": "x"}),
            ),
            (
                "MultiEdit",
                json!({"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}),
                "multi_edit",
                json!({"edits": [{"path": "a", "old_text": "x", "new_text": "y"}]}),
            ),
        ] {
            assert_eq!(
                derive_proposed_changes(classic, &theirs, folder),
                derive_proposed_changes(tool, &ours, folder),
                "{classic}"
            );
            assert_eq!(
                derive_proposed_changes(classic, &theirs, folder).len(),
                1,
                "{classic}"
            );
        }
    }

    #[test]
    fn convert_diff_preview_keeps_missing_line_breaks() {
        let remark = DiffHunk::NO_NEWLINE_MARKER;
        let shown = |hunk: &str| {
            let diffs =
                convert_diff_preview(&format!("--- a\n+++ a\n{hunk}"), Path::new("/work")).unwrap();
            let [ToolCallContent::Diff(diff)] = diffs.as_slice() else {
                panic!("{diffs:?}");
            };
            (diff.old_text.clone().unwrap(), diff.new_text.clone())
        };
        let both = format!("@@ -1 +1 @@\n-x\n{remark}\n+y\n{remark}\n");
        assert_eq!(shown(&both), ("x".to_owned(), "y".to_owned()));
        let old = format!("@@ -1 +1 @@\n-x\n{remark}\n+y\n");
        assert_eq!(shown(&old), ("x".to_owned(), "y\n".to_owned()));
        let kept = format!("@@ -1,2 +1,2 @@\n-x\n+y\n z\n{remark}\n");
        assert_eq!(shown(&kept), ("x\nz".to_owned(), "y\nz".to_owned()));
    }

    #[test]
    fn convert_diff_preview_rejects_unsupported_subjects() {
        let folder = Path::new("/work");
        let hunk = "@@ -1 +1 @@\n-x\n+y\n";
        assert_eq!(
            convert_diff_preview(&format!("--- a\n+++ a\n{hunk}"), folder).map(|diffs| diffs.len()),
            Some(1)
        );
        for subject in [
            "make\n".to_owned(),
            format!("make\n--- a\n+++ a\n{hunk}"),
            format!("--- a\n+++ /dev/null\n{hunk}"),
            format!("--- a\n+++ b\n{hunk}"),
            "--- a\n+++ b\n".to_owned(),
            format!("--- a\n+++ a\n{hunk}\\ rm -rf ~\n"),
            format!("--- a\n+++ a\n{hunk}rm -rf ~\n"),
            "--- a\n+++ a\n@@ -1 +1 @@\n-x\r+y\n+z\n".to_owned(),
            "--- a\n+++ a\n@@ -1,2 +1 @@\n-x\n+y\n".to_owned(),
        ] {
            assert_eq!(convert_diff_preview(&subject, folder), None, "{subject:?}");
        }
    }

    #[test]
    fn parse_replace_blocks_returns_pairs() {
        let text = "<<<<<<< SEARCH\none\n=======\nzwei\n>>>>>>> REPLACE\n<<<<<<< SEARCH\nthree\n=======\n>>>>>>> REPLACE\n";
        assert_eq!(
            parse_replace_blocks(text),
            [
                ("one\n".into(), "zwei\n".into()),
                ("three\n".into(), String::new())
            ]
        );
        assert_eq!(parse_replace_blocks("no block"), []);
    }
}
