//! Finds the results that show files being worked on. They stay, because an edit needs their text.
//!
//! These are the files that were read or edited last, by the names under which agents call such
//! tools. A command that names such a file may have shown it, too. A later view of the whole file
//! makes earlier ones obsolete.

use std::collections::HashSet;

use haft_context::CallSubject;
use haft_types::ToolCall;
use serde_json::Value;

use super::request::{CallSite, ParsedRequest};

/// The number of newest results in which views of files count. More would leave less to clear; with
/// fewer, more edits would need text that is gone.
const MAX_AGE: usize = 40;
/// The maximum number of newest commands that count as views of one file.
const MAX_COMMANDS: usize = 2;

/// The names under which agents call tools that [`CallSubject`] knows by another name.
const ALIASES: [(&str, &str); 9] = [
    ("replace", "edit"),
    ("search_replace", "edit"),
    ("smart_edit", "edit"),
    ("write_file", "write"),
    ("create_file", "write"),
    ("text_editor", "str_replace_editor"),
    ("view_file", "read"),
    ("read_text_file", "read"),
    ("open_file", "read"),
];
/// Parameter names for the path of a file that [`CallSubject`] does not know.
const PATH_ALIASES: [&str; 3] = ["filePath", "absolute_path", "absolutePath"];

/// The files that one call reads, changes or names.
struct CallFiles {
    edited: Vec<String>,
    /// True if the call's arguments contain the whole new text of the edited files.
    writes_whole: bool,
    /// The file that the call reads, and true if it reads the whole file.
    read: Option<(String, bool)>,
    /// The command line, in which files may be named.
    command: Option<String>,
}

impl CallFiles {
    fn from_call(call: &CallSite<'_>) -> Self {
        let arguments = call.decode_arguments();
        let mut value: Value = serde_json::from_str(&arguments)
            .unwrap_or_else(|_| Value::String(arguments.clone().into_owned()));
        let mut found = Self {
            edited: find_patched_files(&value),
            writes_whole: false,
            read: None,
            command: None,
        };
        if let Value::Object(fields) = &mut value {
            for name in PATH_ALIASES {
                if let Some(path) = fields.remove(name) {
                    fields.insert("path".to_owned(), path);
                }
            }
        }
        let name = call.name.rsplit("__").next().unwrap_or_default();
        let alias = ALIASES.iter().find(|(other, _)| *other == name);
        let name = alias.map_or(name, |(_, known)| known);
        let subject = CallSubject::from_call(&ToolCall {
            id: String::new(),
            name: name.to_owned(),
            arguments: value.to_string(),
            signature: None,
        });
        match subject {
            Some(CallSubject::Read { path, from, to }) => {
                found.read = Some((path, from <= 1 && to == u64::MAX));
            }
            Some(CallSubject::Edit { paths }) => {
                found.writes_whole = matches!(name, "write" | "Write" | "write_to_file");
                found.edited.extend(paths);
            }
            Some(CallSubject::Run { command, .. }) => found.command = Some(command),
            None => {}
        }
        found
    }

    fn names(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.command
            .as_ref()
            .is_some_and(|command| !name.is_empty() && command.contains(name))
    }
}

/// Returns the files that patches in the arguments change.
fn find_patched_files(value: &Value) -> Vec<String> {
    const MARKERS: [&str; 2] = ["*** Update File: ", "*** Add File: "];
    match value {
        Value::String(text) if text.contains("*** ") => text
            .lines()
            .filter_map(|line| MARKERS.iter().find_map(|mark| line.strip_prefix(mark)))
            .map(str::to_owned)
            .collect(),
        Value::Array(list) => list.iter().flat_map(find_patched_files).collect(),
        Value::Object(fields) => fields.values().flat_map(find_patched_files).collect(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn is_same_file(one: &str, other: &str) -> bool {
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    ends(one, other) || ends(other, one)
}

/// Returns the indices of the results that show files being worked on: the newest view of all of a
/// file and the parts of it that were read later.
pub(crate) fn find_working_results(request: &ParsedRequest<'_>) -> HashSet<usize> {
    let newest: Vec<(usize, CallFiles)> = request
        .results
        .iter()
        .enumerate()
        .rev()
        .take(MAX_AGE)
        .map(|(index, result)| (index, CallFiles::from_call(&request.calls[result.call])))
        .collect();
    let mut files: Vec<&str> = Vec::new();
    let edited = newest.iter().flat_map(|(_, call)| &call.edited);
    let read = newest
        .iter()
        .filter_map(|(_, call)| Some(&call.read.as_ref()?.0));
    for path in edited.chain(read) {
        if !files.iter().any(|file| is_same_file(file, path)) {
            files.push(path);
        }
    }
    files
        .into_iter()
        .flat_map(|file| list_views(&newest, file))
        .collect()
}

/// Returns the results that show a file, newest first, back to the newest one that shows all of it.
/// If the model wrote the whole file itself, its call shows the text.
fn list_views(newest: &[(usize, CallFiles)], file: &str) -> Vec<usize> {
    let mut views = Vec::new();
    let mut commands = 0;
    for (index, call) in newest {
        let is_edited = call.edited.iter().any(|path| is_same_file(path, file));
        if is_edited && call.writes_whole {
            break;
        }
        match &call.read {
            Some((path, is_whole)) if is_same_file(path, file) => {
                views.push(*index);
                if *is_whole {
                    break;
                }
            }
            None if commands < MAX_COMMANDS && call.names(file) => {
                views.push(*index);
                commands += 1;
            }
            Some(_) | None => {}
        }
    }
    views
}
