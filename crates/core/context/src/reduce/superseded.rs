//! Finds results that later ones have made obsolete; they are the first to be cleared.
//!
//! ```text
//! read a.rs 1-80   …   read a.rs          the second read covers the first
//! read a.rs        …   edit a.rs          the content that was read is outdated
//! run cargo test   …   run cargo test     the command was run again
//! ```
//!
//! A failed read or edit makes nothing obsolete. The subject of a call is taken from its result if
//! that names the files, otherwise from its arguments, by the parameter names of haft's tools and
//! their aliases. The files that a command changed come from the record of changes in the result's
//! metadata.

use std::collections::{HashMap, HashSet};

use haft_types::{Metadata, Role, ToolCall, ToolResult, ToolStatus};
use serde_json::Value;

use crate::build::rounds::TimelineItem;

/// The file, files or command that a call reads, changes or runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CallSubject {
    /// The call reads some lines of a file.
    Read {
        /// The file, without a leading `./`.
        path: String,
        /// The number of the first line, counted from 1.
        from: u64,
        /// The number of the last line, or `u64::MAX` if the call sets no end.
        to: u64,
    },
    /// The call changes files.
    Edit {
        /// The files, each without a leading `./`.
        paths: Vec<String>,
    },
    /// The call runs a command.
    Run {
        /// The command line.
        command: String,
        /// The folder that the command runs in; empty if the call names none.
        cwd: String,
    },
}

/// The key under which a result's metadata lists the files that the call changed, according to the
/// record of changes.
pub const CHANGED_FILES_KEY: &str = "changed";

impl CallSubject {
    /// Determines the subject of a call from its arguments alone.
    pub fn from_call(call: &ToolCall) -> Option<Self> {
        let call = call.resolve_indirect();
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        let text = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| arguments.get(*name)?.as_str())
                .map(str::to_owned)
        };
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
        match call.name.as_str() {
            // Other agents have one tool for reading and changing files.
            "str_replace_editor" | "str_replace_based_edit_tool"
                if text(&["command"]).as_deref() == Some("view") =>
            {
                let end = |index: usize| arguments.get("view_range")?.get(index)?.as_u64();
                let from = end(0).unwrap_or(1).max(1);
                let to = end(1).unwrap_or(u64::MAX);
                Some(Self::Read {
                    path: find_path(&arguments)?,
                    from,
                    to,
                })
            }
            "str_replace_editor" | "str_replace_based_edit_tool"
                if matches!(
                    text(&["command"]).as_deref(),
                    Some("str_replace" | "insert" | "create")
                ) =>
            {
                let paths = find_paths(&arguments);
                (!paths.is_empty()).then_some(Self::Edit { paths })
            }
            "read_file" | "Read" | "read" | "view" | "cat" => {
                let from = number("start_line")
                    .or_else(|| number("offset"))
                    .unwrap_or(1)
                    .max(1);
                let to = number("end_line")
                    .or_else(|| number("limit").map(|limit| from.saturating_add(limit) - 1));
                Some(Self::Read {
                    path: find_path(&arguments)?,
                    from,
                    to: to.unwrap_or(u64::MAX),
                })
            }
            "write_to_file" | "edit_file" | "replace_in_file" | "multi_edit" | "Write" | "Edit"
            | "MultiEdit" | "write" | "edit" | "str_replace" | "NotebookEdit" => {
                let paths = find_paths(&arguments);
                (!paths.is_empty()).then_some(Self::Edit { paths })
            }
            "apply_patch" => Some(Self::Edit {
                paths: find_patch_paths(&text(&["patch", "input"])?),
            }),
            "execute_command" | "Bash" | "bash" | "shell" | "shell_command" | "exec_command"
            | "execute_bash" | "local_shell" | "run_shell_command" => {
                let command = text(&["command", "cmd"])
                    .or_else(|| join_command(arguments.get("command")?))?;
                Some(Self::Run {
                    command,
                    cwd: text(&["cwd", "workdir"]).unwrap_or_default(),
                })
            }
            _ => None,
        }
    }

    /// Returns all subjects of a call, including those that only its result reveals: file paths as
    /// the tool reports them, whatever the parameters of the tool are named, and files that a
    /// command changed.
    pub fn from_call_and_result(
        call: Option<&ToolCall>,
        result: &ToolResult,
        metadata: &Metadata,
    ) -> Vec<Self> {
        let data = &result.envelope.data;
        let mut subjects = Vec::new();
        let asked = call.and_then(Self::from_call);
        let recorded: Vec<_> = parse_paths(metadata.get(CHANGED_FILES_KEY));
        let changed = if recorded.is_empty() {
            find_changed_files(data)
        } else {
            recorded
        };
        let edited = match &asked {
            Some(Self::Edit { paths }) if changed.is_empty() => paths.clone(),
            Some(_) | None => changed,
        };
        match asked {
            Some(Self::Read { path, from, to }) => {
                let path = data
                    .get("path")
                    .and_then(Value::as_str)
                    .map_or(path, normalize_path);
                subjects.push(Self::Read { path, from, to });
            }
            Some(run @ Self::Run { .. }) => subjects.push(run),
            Some(Self::Edit { .. }) | None => {}
        }
        if !edited.is_empty() {
            subjects.push(Self::Edit { paths: edited });
        }
        subjects
    }

    /// True if the arguments of the call hold the whole new text of a file.
    pub(crate) fn writes_whole_file(call: &ToolCall) -> bool {
        let call = call.resolve_indirect();
        match call.name.as_str() {
            "write_to_file" | "Write" | "write" | "write_file" => true,
            "str_replace_editor" | "str_replace_based_edit_tool" => {
                call.arguments.contains("\"create\"")
            }
            _ => false,
        }
    }

    /// Formats the subject for display.
    pub(crate) fn format_label(&self) -> String {
        match self {
            Self::Read { path, .. } => path.clone(),
            Self::Edit { paths } => paths.join(" "),
            Self::Run { command, .. } => command.clone(),
        }
    }
}

/// Joins a list of words into a command line. For `bash -c`, returns only the script.
fn join_command(words: &Value) -> Option<String> {
    let words: Option<Vec<_>> = words.as_array()?.iter().map(Value::as_str).collect();
    Some(match words?.as_slice() {
        [_, flag, script] if flag.starts_with('-') && flag.ends_with('c') => (*script).to_owned(),
        words => words.join(" "),
    })
}

/// Returns the file path in an object, under any of the keys that agents use for it.
fn find_path(object: &Value) -> Option<String> {
    const PATH_KEYS: [&str; 6] = [
        "path",
        "file_path",
        "file",
        "filename",
        "target_file",
        "notebook_path",
    ];
    PATH_KEYS
        .iter()
        .find_map(|name| object.get(*name)?.as_str())
        .map(normalize_path)
}

/// Returns the file paths in arguments, including those in lists of objects.
fn find_paths(arguments: &Value) -> Vec<String> {
    let lists = ["edits", "files", "changes"]
        .iter()
        .filter_map(|name| arguments.get(*name)?.as_array());
    let mut paths: Vec<_> = find_path(arguments).into_iter().collect();
    for path in lists.flatten().filter_map(find_path) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Returns the files that a result reports as changed: each haft tool that changes a file adds a
/// `change` field.
fn find_changed_files(data: &Value) -> Vec<String> {
    let listed = data
        .get("files")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let changed = std::iter::once(data)
        .chain(listed)
        .filter(|one| one.get("change").is_some_and(Value::is_string));
    changed.filter_map(find_path).collect()
}

fn parse_paths(list: Option<&Value>) -> Vec<String> {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    entries
        .filter_map(Value::as_str)
        .map(normalize_path)
        .collect()
}

fn normalize_path(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).to_owned()
}

/// Returns the paths that a patch names.
fn find_patch_paths(patch: &str) -> Vec<String> {
    const PATH_MARKERS: [&str; 5] = [
        "*** Update File: ",
        "*** Delete File: ",
        "*** Add File: ",
        "*** Move to: ",
        "+++ b/",
    ];
    patch
        .lines()
        .filter_map(|line| PATH_MARKERS.iter().find_map(|mark| line.strip_prefix(mark)))
        .map(normalize_path)
        .collect()
}

/// The subjects of the results after the current one, collected while walking backwards through the
/// conversation.
#[derive(Default)]
struct LaterSubjects {
    /// The line ranges that were read, by file.
    reads: HashMap<String, Vec<(u64, u64)>>,
    edited: HashSet<String>,
    run: HashSet<(String, String)>,
}

impl LaterSubjects {
    fn makes_obsolete(&self, subject: &CallSubject) -> bool {
        match subject {
            CallSubject::Read { path, from, to } => {
                let read = self
                    .reads
                    .get(path)
                    .is_some_and(|reads| reads.iter().any(|(a, b)| a <= from && b >= to));
                read || self.edited.contains(path)
            }
            // The report of an edit records an event, so it never becomes obsolete.
            CallSubject::Edit { .. } => false,
            CallSubject::Run { command, cwd } => self.run.contains(&(command.clone(), cwd.clone())),
        }
    }

    fn record(&mut self, subject: CallSubject, status: ToolStatus) {
        let succeeded = status == ToolStatus::Success;
        match subject {
            CallSubject::Read { path, from, to } if succeeded => {
                self.reads.entry(path).or_default().push((from, to));
            }
            CallSubject::Edit { paths } if succeeded => self.edited.extend(paths),
            CallSubject::Read { .. } | CallSubject::Edit { .. } => {}
            CallSubject::Run { command, cwd } => {
                self.run.insert((command, cwd));
            }
        }
    }
}

/// Returns all calls, by the number of their block and by their id.
pub(crate) fn calls_by_id(items: &[TimelineItem]) -> HashMap<(u32, &str), &ToolCall> {
    items
        .iter()
        .flat_map(|item| {
            item.entry
                .message
                .tool_calls()
                .map(|call| ((item.block, call.id.as_str()), call))
        })
        .collect()
}

/// Returns the indices of results that are obsolete because of a later result.
pub(crate) fn find_superseded(items: &[TimelineItem]) -> HashSet<usize> {
    let calls = calls_by_id(items);
    let mut later = LaterSubjects::default();
    let mut obsolete = HashSet::new();
    for (index, item) in items
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, item)| item.role() == Role::Tool)
    {
        let about = |result: &ToolResult| {
            let call = calls
                .get(&(item.block, result.tool_call_id.as_str()))
                .copied();
            (
                CallSubject::from_call_and_result(call, result, &item.entry.message.metadata),
                result.envelope.status,
            )
        };
        let about: Vec<_> = item.entry.message.tool_results().map(about).collect();
        let covered = |(all, _): &(Vec<CallSubject>, ToolStatus)| {
            !all.is_empty() && all.iter().all(|one| later.makes_obsolete(one))
        };
        if !about.is_empty() && about.iter().all(covered) {
            obsolete.insert(index);
        }
        for (subjects, status) in about {
            for subject in subjects {
                later.record(subject, status);
            }
        }
    }
    obsolete
}

#[cfg(test)]
mod tests;
