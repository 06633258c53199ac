//! Results that later ones have made obsolete: they are the first to be cleared.
//!
//! ```text
//! read a.rs 1-80   …   read a.rs          the first is covered by the second
//! read a.rs        …   edit a.rs          what was read is not what the file holds
//! run cargo test   …   run cargo test     the same command, run again
//! ```
//!
//! A failed read or edit makes nothing obsolete. What a call is about is read from its result,
//! where that names the files, and otherwise from its arguments, by the names haft's tools and
//! their aliases give them. What a command changed stands in the record of changes, which the
//! result's metadata holds.

use std::collections::{HashMap, HashSet};

use haft_types::{Metadata, Role, ToolCall, ToolResult, ToolStatus};
use serde_json::Value;

use crate::build::rounds::TimelineItem;

/// What a call is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CallSubject {
    /// Lines of a file that are read.
    Read {
        /// The file, without a leading `./`.
        path: String,
        /// The first line, from 1.
        from: u64,
        /// The last line; the largest number where the call sets no end.
        to: u64,
    },
    /// Files that are changed.
    Edit {
        /// The files, each without a leading `./`.
        paths: Vec<String>,
    },
    /// A command that is run.
    Run {
        /// The command line.
        command: String,
        /// The folder it runs in; empty where the call names none.
        cwd: String,
    },
}

/// Under which name a result's metadata holds the files that the call changed, as the record of
/// changes saw it.
pub const CHANGED: &str = "changed";

impl CallSubject {
    /// What a call is about, from its arguments alone.
    pub fn of(call: &ToolCall) -> Option<Self> {
        let call = call.meant();
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        let text = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| arguments.get(*name)?.as_str())
                .map(str::to_owned)
        };
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
        match call.name.as_str() {
            // Other agents have one tool for reading and changing.
            "str_replace_editor" | "str_replace_based_edit_tool"
                if text(&["command"]).as_deref() == Some("view") =>
            {
                let end = |index: usize| arguments.get("view_range")?.get(index)?.as_u64();
                let from = end(0).unwrap_or(1).max(1);
                let to = end(1).unwrap_or(u64::MAX);
                Some(Self::Read {
                    path: path_of(&arguments)?,
                    from,
                    to,
                })
            }
            "read_file" | "Read" | "read" | "view" | "cat" => {
                let from = number("start_line")
                    .or_else(|| number("offset"))
                    .unwrap_or(1)
                    .max(1);
                let to = number("end_line")
                    .or_else(|| number("limit").map(|limit| from.saturating_add(limit) - 1));
                Some(Self::Read {
                    path: path_of(&arguments)?,
                    from,
                    to: to.unwrap_or(u64::MAX),
                })
            }
            "write_to_file" | "edit_file" | "replace_in_file" | "multi_edit" | "Write" | "Edit"
            | "MultiEdit" | "write" | "edit" | "str_replace" | "NotebookEdit" => {
                let paths = paths_of(&arguments);
                (!paths.is_empty()).then_some(Self::Edit { paths })
            }
            "apply_patch" => Some(Self::Edit {
                paths: patched(&text(&["patch", "input"])?),
            }),
            "execute_command" | "Bash" | "bash" | "shell" | "shell_command" | "exec_command"
            | "execute_bash" | "local_shell" | "run_shell_command" => {
                let command =
                    text(&["command", "cmd"]).or_else(|| script(arguments.get("command")?))?;
                Some(Self::Run {
                    command,
                    cwd: text(&["cwd", "workdir"]).unwrap_or_default(),
                })
            }
            _ => None,
        }
    }

    /// All that a call is about, with what its result says of it: the files as the tool names them,
    /// whatever its parameters are called, and what a command changed.
    pub fn all(call: Option<&ToolCall>, result: &ToolResult, metadata: &Metadata) -> Vec<Self> {
        let data = &result.envelope.data;
        let mut subjects = Vec::new();
        let asked = call.and_then(Self::of);
        let recorded: Vec<_> = strings(metadata.get(CHANGED));
        let changed = if recorded.is_empty() {
            changed_files(data)
        } else {
            recorded
        };
        let edited = match &asked {
            Some(Self::Edit { paths }) if changed.is_empty() => paths.clone(),
            Some(_) | None => changed,
        };
        match asked {
            Some(Self::Read { path, from, to }) => {
                let path = data.get("path").and_then(Value::as_str).map_or(path, plain);
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

    /// What it is about, for people.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Read { path, .. } => path.clone(),
            Self::Edit { paths } => paths.join(" "),
            Self::Run { command, .. } => command.clone(),
        }
    }
}

/// The command line of a list of words: what `bash -c` is given, else all of them.
fn script(words: &Value) -> Option<String> {
    let words: Option<Vec<_>> = words.as_array()?.iter().map(Value::as_str).collect();
    Some(match words?.as_slice() {
        [_, flag, script] if flag.starts_with('-') && flag.ends_with('c') => (*script).to_owned(),
        words => words.join(" "),
    })
}

/// The file an object names.
fn path_of(object: &Value) -> Option<String> {
    const NAMES: [&str; 6] = [
        "path",
        "file_path",
        "file",
        "filename",
        "target_file",
        "notebook_path",
    ];
    NAMES
        .iter()
        .find_map(|name| object.get(*name)?.as_str())
        .map(plain)
}

/// The files that arguments name, alone or one by one in a list.
fn paths_of(arguments: &Value) -> Vec<String> {
    let lists = ["edits", "files", "changes"]
        .iter()
        .filter_map(|name| arguments.get(*name)?.as_array());
    let mut paths: Vec<_> = path_of(arguments).into_iter().collect();
    for path in lists.flatten().filter_map(path_of) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// The files a result says were changed: every tool of haft's that changes one says how.
fn changed_files(data: &Value) -> Vec<String> {
    let listed = data
        .get("files")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let changed = std::iter::once(data)
        .chain(listed)
        .filter(|one| one.get("change").is_some_and(Value::is_string));
    changed.filter_map(path_of).collect()
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(Value::as_str).map(plain).collect()
}

fn plain(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).to_owned()
}

/// The files a patch names.
fn patched(patch: &str) -> Vec<String> {
    const MARKS: [&str; 5] = [
        "*** Update File: ",
        "*** Delete File: ",
        "*** Add File: ",
        "*** Move to: ",
        "+++ b/",
    ];
    patch
        .lines()
        .filter_map(|line| MARKS.iter().find_map(|mark| line.strip_prefix(mark)))
        .map(plain)
        .collect()
}

/// What is known from later messages, on a walk from the end.
#[derive(Default)]
struct Later {
    /// What was read, by file.
    reads: HashMap<String, Vec<(u64, u64)>>,
    edited: HashSet<String>,
    run: HashSet<(String, String)>,
}

impl Later {
    fn covers(&self, subject: &CallSubject) -> bool {
        match subject {
            CallSubject::Read { path, from, to } => {
                let read = self
                    .reads
                    .get(path)
                    .is_some_and(|reads| reads.iter().any(|(a, b)| a <= from && b >= to));
                read || self.edited.contains(path)
            }
            // What an edit reported is history, not a copy of something.
            CallSubject::Edit { .. } => false,
            CallSubject::Run { command, cwd } => self.run.contains(&(command.clone(), cwd.clone())),
        }
    }

    fn note(&mut self, subject: CallSubject, status: ToolStatus) {
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

/// The indices of results that later ones have made obsolete.
pub(crate) fn superseded(items: &[TimelineItem]) -> HashSet<usize> {
    let calls: HashMap<(u32, &str), &ToolCall> = items
        .iter()
        .flat_map(|item| {
            item.entry
                .message
                .tool_calls()
                .map(|call| ((item.block, call.id.as_str()), call))
        })
        .collect();
    let mut later = Later::default();
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
                CallSubject::all(call, result, &item.entry.message.metadata),
                result.envelope.status,
            )
        };
        let about: Vec<_> = item.entry.message.tool_results().map(about).collect();
        let covered = |(all, _): &(Vec<CallSubject>, ToolStatus)| {
            !all.is_empty() && all.iter().all(|one| later.covers(one))
        };
        if !about.is_empty() && about.iter().all(covered) {
            obsolete.insert(index);
        }
        for (subjects, status) in about {
            for subject in subjects {
                later.note(subject, status);
            }
        }
    }
    obsolete
}

#[cfg(test)]
mod tests;
