//! Computes the files that a call would write, in full, so that the user can edit them before they
//! are written.
//!
//! Several files are one text, each below a line with its name. Invariant: the arguments made from
//! an edited text write exactly that text (except that the last line of each of several files ends
//! with a line break); if that isn't possible, no text is offered.

use haft_agent::Approval;
use serde_json::{Value, json};

use crate::diff;

/// A function that returns the text of a project file, or `None` if the file isn't text.
pub(crate) type ReadText<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The name that a diff gives to a file that does not exist.
const NO_FILE: &str = "/dev/null";

/// Returns true if the user can edit the content of the files that the tool `tool` would write.
pub(crate) fn has_editable_files(tool: &str) -> bool {
    [
        "write_to_file",
        "edit_file",
        "replace_in_file",
        "multi_edit",
        "apply_patch",
    ]
    .contains(&tool)
}

/// The new content of all files that a call would write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProposedFiles {
    files: Vec<ProposedFile>,
    /// The remaining sections of a patch, such as deletions and renames, which are kept unchanged.
    besides: String,
}

/// A file that a call would write.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ProposedFile {
    /// The path before the call. `None` for a new file.
    from: Option<String>,
    /// The path that is written.
    path: String,
    text: String,
    old: String,
}

/// The error for an edited text in which the lines that separate the files were changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LostNames;

impl ProposedFiles {
    /// Computes the files that a call would write. Returns `None` if their content can't be
    /// determined.
    pub(crate) fn from_call(approval: &Approval, read: ReadText<'_>) -> Option<Self> {
        let text_of = |name: &str| {
            approval
                .arguments
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        if approval.tool == "write_to_file" {
            let path = text_of("path")?;
            let text = text_of("content")?;
            let files = vec![ProposedFile {
                from: None,
                path,
                text,
                old: String::new(),
            }];
            return Some(Self {
                files,
                besides: String::new(),
            });
        }
        let mut proposed = Self {
            files: Vec::new(),
            besides: String::new(),
        };
        for section in diff::split_by_file(&approval.subject) {
            match section.names {
                (from, NO_FILE) => proposed.besides.extend(["*** Delete File: ", from, "\n"]),
                (from, to) if section.lines.is_empty() => {
                    proposed.besides.extend([
                        "*** Update File: ",
                        from,
                        "\n*** Move to: ",
                        to,
                        "\n",
                    ]);
                }
                (from, to) => {
                    proposed
                        .files
                        .push(ProposedFile::from_hunks(from, to, &section.lines, read)?);
                }
            }
        }
        // If the call writes one file, its arguments contain the path.
        if let (Some(path), [file]) = (text_of("path"), proposed.files.as_mut_slice()) {
            file.path = path;
        }
        let several = proposed.files.len() > 1;
        let patch = approval.tool == "apply_patch";
        let whole = |text: &str| text.ends_with('\n');
        let fits = |file: &ProposedFile| {
            (whole(&file.text) && (file.from.is_none() || whole(&file.old))) || !(several || patch)
        };
        let can = if several {
            patch || approval.tool == "multi_edit"
        } else {
            proposed.files.len() == 1
        };
        (can && proposed.files.iter().all(fits)
            && proposed
                .split_edited_text(&proposed.editable_text())
                .is_ok())
        .then_some(proposed)
    }

    /// Returns the text for the user to edit, which contains all files.
    pub(crate) fn editable_text(&self) -> String {
        match self.files.as_slice() {
            [file] => file.text.clone(),
            files => files
                .iter()
                .flat_map(|file| [file.name_line(), "\n".to_owned(), file.text.clone()])
                .collect(),
        }
    }

    /// Splits an edited text into the texts of the files.
    fn split_edited_text(&self, edited: &str) -> Result<Vec<String>, LostNames> {
        let [first, rest @ ..] = self.files.as_slice() else {
            return Err(LostNames);
        };
        if rest.is_empty() {
            return Ok(vec![edited.to_owned()]);
        }
        let mut names = self.files.iter();
        let mut texts: Vec<String> = Vec::new();
        if edited.lines().next().map(str::trim_end) != Some(&first.name_line()) {
            return Err(LostNames);
        }
        for line in edited.lines() {
            let is_name = self
                .files
                .iter()
                .any(|file| file.name_line() == line.trim_end());
            if is_name {
                if names.next().map(ProposedFile::name_line).as_deref() != Some(line.trim_end()) {
                    return Err(LostNames);
                }
                texts.push(String::new());
            } else if let Some(text) = texts.last_mut() {
                text.extend([line, "\n"]);
            }
        }
        if texts.len() == self.files.len() {
            Ok(texts)
        } else {
            Err(LostNames)
        }
    }

    /// Returns the extension of the temporary file that the editor opens, from which the editor
    /// recognizes the language.
    pub(crate) fn file_extension(&self) -> String {
        let path = self
            .files
            .first()
            .map(|file| std::path::Path::new(&file.path));
        let ending = path.and_then(|path| path.extension()?.to_str());
        ending.map_or_else(String::new, |ending| format!(".{ending}"))
    }

    /// Returns the call's arguments with the edited text as the new content. Returns `None` if the
    /// text wasn't changed.
    pub(crate) fn edited_arguments(
        &self,
        approval: &Approval,
        edited: &str,
    ) -> Result<Option<Value>, LostNames> {
        let texts = self.split_edited_text(edited)?;
        if texts
            .iter()
            .zip(&self.files)
            .all(|(text, file)| *text == file.text)
        {
            return Ok(None);
        }
        let mut arguments = approval.arguments.clone();
        let changed = || {
            self.files
                .iter()
                .zip(&texts)
                .filter(|(file, text)| file.from.is_none() || file.old != **text)
        };
        match (
            approval.tool.as_str(),
            self.files.as_slice(),
            texts.as_slice(),
        ) {
            ("write_to_file", _, [text]) => arguments["content"] = text.as_str().into(),
            ("edit_file", [file], [text]) => {
                (arguments["old_text"], arguments["new_text"]) =
                    (file.old.as_str().into(), text.as_str().into());
            }
            ("replace_in_file", [file], [text]) => {
                arguments["diff"] = file.build_search_replace_block(text).into();
            }
            ("multi_edit", ..) => {
                let edit = |(file, text): (&ProposedFile, &String)| json!({"path": file.path, "old_string": file.old, "new_string": text});
                arguments["edits"] = changed().map(edit).collect();
            }
            _ => {
                let sections: String = changed()
                    .map(|(file, text)| file.build_patch_section(text))
                    .collect();
                arguments["patch"] =
                    format!("*** Begin Patch\n{sections}{}*** End Patch\n", self.besides).into();
            }
        }
        Ok(Some(arguments))
    }
}

impl ProposedFile {
    fn from_hunks(from: &str, to: &str, places: &[&str], read: ReadText<'_>) -> Option<Self> {
        let from = Some(from.to_owned()).filter(|from| from != NO_FILE);
        let old = match &from {
            Some(from) => read(from).filter(|old| !old.is_empty() && !old.contains('\r'))?,
            None => String::new(),
        };
        let text = apply_hunks(&old, places)?;
        Some(Self {
            from,
            path: to.to_owned(),
            text,
            old,
        })
    }

    /// Returns the line that precedes the file's text if there are several files.
    fn name_line(&self) -> String {
        format!("######## {} ########", self.path)
    }

    fn build_search_replace_block(&self, text: &str) -> String {
        let line = |text: &str| {
            if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            }
        };
        let old = &self.old;
        format!(
            "<<<<<<< SEARCH\n{old}{}=======\n{text}{}>>>>>>> REPLACE\n",
            line(old),
            line(text)
        )
    }

    /// Returns the section of a patch that writes `text` to this file.
    fn build_patch_section(&self, text: &str) -> String {
        let lines = |sign, text: &str| {
            text.lines()
                .flat_map(|line| [sign, line, "\n"])
                .collect::<String>()
        };
        let Some(from) = &self.from else {
            return format!("*** Add File: {}\n{}", self.path, lines("+", text));
        };
        let moved = if *from == self.path {
            String::new()
        } else {
            format!("*** Move to: {}\n", self.path)
        };
        format!(
            "*** Update File: {from}\n{moved}@@\n{}{}",
            lines("-", &self.old),
            lines("+", text)
        )
    }
}

/// Applies the hunks of a unified diff to `old`. Returns `None` if they don't match exactly.
fn apply_hunks(old: &str, places: &[&str]) -> Option<String> {
    let lines: Vec<_> = old.split_inclusive('\n').collect();
    let mut text = String::new();
    let mut at = 0;
    let mut in_place = false;
    for line in places {
        if let Some(place) = line.strip_prefix("@@ -") {
            let first: usize = place.split([',', ' ']).next()?.parse().ok()?;
            let first = first.saturating_sub(1).max(at);
            text.extend(lines.get(at..first)?.iter().copied());
            (at, in_place) = (first, true);
            continue;
        }
        match line.split_at_checked(1).filter(|_| in_place)? {
            ("+", added) => text.extend([added, "\n"]),
            (mark @ (" " | "-"), known) => {
                let there = lines.get(at)?;
                if there.trim_end_matches('\n') != known {
                    return None;
                }
                if mark == " " {
                    text.push_str(there);
                }
                at += 1;
            }
            ("\\", _) => text.truncate(text.trim_end_matches('\n').len()),
            _ => return None,
        }
    }
    text.extend(lines.get(at..)?.iter().copied());
    in_place.then_some(text)
}

#[cfg(test)]
mod tests {
    use haft_agent::SubjectKind;
    use proptest::prelude::*;

    use super::*;

    fn diff_lines(diff: &str) -> Vec<&str> {
        diff.lines().collect()
    }

    #[test]
    fn proposed_diff_applies_exactly_or_not() {
        let diff = "@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n";
        assert_eq!(
            apply_hunks("one\ntwo\nthree\nfour\n", &diff_lines(diff)).as_deref(),
            Some("one\nzwei\nthree\nfour\n")
        );
        assert_eq!(apply_hunks("one\n2\nthree\n", &diff_lines(diff)), None);
        let twice = diff.to_owned() + "@@ -9 +9 @@\n-nine\n+neun\n\\ No newline at end of file\n";
        let text = "one\ntwo\nthree\n4\n5\n6\n7\n8\nnine\n";
        assert_eq!(
            apply_hunks(text, &diff_lines(&twice)).as_deref(),
            Some("one\nzwei\nthree\n4\n5\n6\n7\n8\nneun")
        );
        assert_eq!(apply_hunks("one\n", &["no diff"]), None);
    }

    fn approval_of(tool: &str, arguments: Value, subject: &str) -> Approval {
        Approval {
            agent: "main".to_owned(),
            call_id: None,
            tool: tool.to_owned(),
            arguments,
            subject: subject.to_owned(),
            subject_kind: SubjectKind::Diff,
            reason: String::new(),
            leaves_sandbox: false,
            parts: Vec::new(),
            remember: Vec::new(),
        }
    }

    const TWO_FILES: &str = "--- a.rs\n+++ a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n--- /dev/null\n+++ b.rs\n@@ -0,0 +1 @@\n+new\n";

    fn read_sample(path: &str) -> Option<String> {
        (path == "a.rs").then(|| "one\ntwo\n".to_owned())
    }

    #[test]
    fn proposed_files_are_joined_and_split() {
        let approval = approval_of("multi_edit", json!({"edits": []}), TWO_FILES);
        let files = ProposedFiles::from_call(&approval, &read_sample).unwrap();
        assert_eq!(
            files.editable_text(),
            "######## a.rs ########\none\nzwei\n######## b.rs ########\nnew\n"
        );
        assert_eq!(
            files.edited_arguments(&approval, &files.editable_text()),
            Ok(None)
        );
        let edited = files.editable_text().replace("new", "newer");
        let edits = json!([
            {"path": "a.rs", "old_string": "one\ntwo\n", "new_string": "one\nzwei\n"},
            {"path": "b.rs", "old_string": "", "new_string": "newer\n"},
        ]);
        assert_eq!(
            files.edited_arguments(&approval, &edited),
            Ok(Some(json!({ "edits": edits })))
        );
        // Unchanged files are not written.
        let undone = files.editable_text().replace("zwei", "two");
        let arguments = files.edited_arguments(&approval, &undone).unwrap().unwrap();
        assert_eq!(arguments["edits"].as_array().unwrap().len(), 1);
        assert_eq!(
            files.edited_arguments(&approval, "one\nzwei\n"),
            Err(LostNames)
        );
        let twice = format!("{}{}", files.editable_text(), files.editable_text());
        assert_eq!(files.edited_arguments(&approval, &twice), Err(LostNames));
    }

    #[test]
    fn proposed_patch_is_rewritten() {
        let subject =
            format!("{TWO_FILES}--- gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n--- old\n+++ moved\n");
        let approval = approval_of("apply_patch", json!({"patch": "…"}), &subject);
        let files = ProposedFiles::from_call(&approval, &read_sample).unwrap();
        let edited = files.editable_text().replace("zwei", "dwa");
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n-one\n-two\n+one\n+dwa\n*** Add File: b.rs\n+new\n\
                     *** Delete File: gone\n*** Update File: old\n*** Move to: moved\n*** End Patch\n";
        assert_eq!(
            files.edited_arguments(&approval, &edited),
            Ok(Some(json!({ "patch": patch })))
        );
    }

    #[test]
    fn proposed_files_must_be_exact() {
        let crlf = |_: &str| Some("one\r\ntwo\r\n".to_owned());
        let patch = |subject: &str| approval_of("apply_patch", json!({"patch": "…"}), subject);
        assert_eq!(ProposedFiles::from_call(&patch(TWO_FILES), &crlf), None);
        let bare = |_: &str| Some("one\ntwo".to_owned());
        let subject =
            "--- a\n+++ a\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+zwei\n";
        assert_eq!(ProposedFiles::from_call(&patch(subject), &bare), None);
        assert!(
            ProposedFiles::from_call(&approval_of("multi_edit", json!({}), subject), &bare)
                .is_none_or(|files| files.files.len() == 1)
        );
        assert_eq!(
            ProposedFiles::from_call(
                &patch("--- gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"),
                &read_sample
            ),
            None
        );
    }

    proptest! {
        #[test]
        fn proposed_files_accept_any_input(old in any::<String>(), diff in any::<String>(), place in any::<u32>()) {
            drop(apply_hunks(&old, &diff_lines(&format!("@@ -{place} +1 @@\n{diff}"))));
        }
    }
}
