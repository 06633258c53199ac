//! The file that a call would leave behind, whole, to be changed by hand before it is written.
//!
//! Invariant: the arguments made of a changed text write exactly that text; where that cannot be had, there is no such file.

use haft_agent::Approval;
use serde_json::{Value, json};

/// Reads a file of the project; none where that is no text.
pub(crate) type ReadText<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Whether calls of this tool leave one file behind that can be changed first.
pub(crate) fn is_file_tool(tool: &str) -> bool {
    ["write_to_file", "edit_file", "replace_in_file", "multi_edit"].contains(&tool)
}

/// A file as a call would leave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProposedFile {
    /// Where it is, as the call says.
    pub(crate) path: String,
    /// What it would hold.
    pub(crate) text: String,
    old: String,
}

impl ProposedFile {
    /// The file that a call would change, where it is one and its text is known.
    pub(crate) fn of(approval: &Approval, read: ReadText<'_>) -> Option<Self> {
        let arguments = &approval.arguments;
        let text_of = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let path = match approval.tool.as_str() {
            "write_to_file" => {
                return Some(Self { path: text_of("path")?, text: text_of("content")?, old: String::new() });
            }
            "edit_file" | "replace_in_file" => text_of("path")?,
            "multi_edit" => {
                let edits = arguments.get("edits")?.as_array()?;
                let mut paths = edits.iter().map(|edit| edit.get("path").and_then(Value::as_str));
                let first = paths.next()??;
                if !paths.all(|path| path == Some(first)) {
                    return None;
                }
                first.to_owned()
            }
            _ => return None,
        };
        let old = read(&path).filter(|old| !old.is_empty() && !old.contains('\r'))?;
        let text = patched(&old, &approval.subject)?;
        Some(Self { path, text, old })
    }

    /// How its name ends, so that an editor knows the language.
    pub(crate) fn ending(&self) -> String {
        let ending = std::path::Path::new(&self.path).extension().and_then(|ending| ending.to_str());
        ending.map_or_else(String::new, |ending| format!(".{ending}"))
    }

    /// The arguments with which the call writes this text instead; none where it stays as it is.
    pub(crate) fn arguments(&self, approval: &Approval, text: &str) -> Option<Value> {
        if text == self.text {
            return None;
        }
        let mut arguments = approval.arguments.clone();
        let (path, old) = (&self.path, &self.old);
        match approval.tool.as_str() {
            "write_to_file" => arguments["content"] = text.into(),
            "edit_file" => (arguments["old_text"], arguments["new_text"]) = (old.as_str().into(), text.into()),
            "multi_edit" => arguments["edits"] = json!([{"path": path, "old_string": old, "new_string": text}]),
            _ => {
                let line = |text: &str| if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                arguments["diff"] =
                    format!("<<<<<<< SEARCH\n{old}{}=======\n{text}{}>>>>>>> REPLACE\n", line(old), line(text)).into();
            }
        }
        Some(arguments)
    }
}

/// A text with a unified diff of it applied; none where that does not fit exactly.
fn patched(old: &str, diff: &str) -> Option<String> {
    let lines: Vec<_> = old.split_inclusive('\n').collect();
    let mut text = String::new();
    let mut at = 0;
    let mut files = 0;
    let mut in_place = false;
    for line in diff.lines() {
        if let Some(place) = line.strip_prefix("@@ -") {
            let first: usize = place.split([',', ' ']).next()?.parse().ok()?;
            let first = first.saturating_sub(1).max(at);
            text.extend(lines.get(at..first)?.iter().copied());
            (at, in_place) = (first, true);
            continue;
        }
        match line.split_at_checked(1) {
            _ if !in_place => files += usize::from(line.starts_with("+++ ")),
            Some(("+", added)) => text.extend([added, "\n"]),
            Some((mark @ (" " | "-"), known)) => {
                let there = lines.get(at)?;
                if there.trim_end_matches('\n') != known {
                    return None;
                }
                if mark == " " {
                    text.push_str(there);
                }
                at += 1;
            }
            Some(("\\", _)) => text.truncate(text.trim_end_matches('\n').len()),
            _ => return None,
        }
    }
    text.extend(lines.get(at..)?.iter().copied());
    (files == 1 && in_place).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_diff_is_applied_exactly_or_not_at_all() {
        let diff = "--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n";
        assert_eq!(patched("one\ntwo\nthree\nfour\n", diff).as_deref(), Some("one\nzwei\nthree\nfour\n"));
        assert_eq!(patched("one\n2\nthree\n", diff), None);
        let twice = diff.to_owned() + "@@ -9 +9 @@\n-nine\n+neun\n\\ No newline at end of file\n";
        let text = "one\ntwo\nthree\n4\n5\n6\n7\n8\nnine\n";
        assert_eq!(patched(text, &twice).as_deref(), Some("one\nzwei\nthree\n4\n5\n6\n7\n8\nneun"));
        assert_eq!(patched("one\n", "no diff"), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(old in any::<String>(), diff in any::<String>(), place in any::<u32>()) {
            drop(patched(&old, &format!("+++ a\n@@ -{place} +1 @@\n{diff}")));
        }
    }
}
