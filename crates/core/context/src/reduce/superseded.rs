//! Results that later ones have made obsolete: they are the first to be cleared.
//!
//! ```text
//! read a.rs 1-80   …   read a.rs          the first is covered by the second
//! read a.rs        …   edit a.rs          what was read is not what the file holds
//! run cargo test   …   run cargo test     the same command, run again
//! ```
//!
//! A failed read or edit makes nothing obsolete. What a call is about is read from its arguments, by the names haft's tools and
//! their aliases give them; a call of any other tool is about nothing and never obsolete.

use std::collections::{HashMap, HashSet};

use haft_types::{Role, ToolCall, ToolResult, ToolStatus};
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

impl CallSubject {
    /// What this call is about, where that is known.
    pub fn of(call: &ToolCall) -> Option<Self> {
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        let text = |names: &[&str]| names.iter().find_map(|name| arguments.get(*name)?.as_str()).map(str::to_owned);
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
        let path = || text(&["path", "file_path", "file"]).map(|path| plain(&path));
        match call.name.as_str() {
            "read_file" | "Read" | "read" => {
                let from = number("start_line").or_else(|| number("offset")).unwrap_or(1).max(1);
                let to = number("end_line").or_else(|| number("limit").map(|limit| from.saturating_add(limit) - 1));
                Some(Self::Read { path: path()?, from, to: to.unwrap_or(u64::MAX) })
            }
            "write_to_file" | "replace_in_file" | "multi_edit" | "Write" | "Edit" | "MultiEdit" | "write" | "edit" => {
                Some(Self::Edit { paths: vec![path()?] })
            }
            "apply_patch" => Some(Self::Edit { paths: patched(&text(&["patch", "input"])?) }),
            "execute_command" | "Bash" | "bash" => {
                Some(Self::Run { command: text(&["command"])?, cwd: text(&["cwd"]).unwrap_or_default() })
            }
            _ => None,
        }
    }
}

impl CallSubject {
    /// What it is about, in a word.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Read { path, .. } => path.clone(),
            Self::Edit { paths } => paths.join(" "),
            Self::Run { command, .. } => command.clone(),
        }
    }
}

fn plain(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).to_owned()
}

/// The files a patch names.
fn patched(patch: &str) -> Vec<String> {
    const MARKS: [&str; 5] = ["*** Update File: ", "*** Delete File: ", "*** Add File: ", "*** Move to: ", "+++ b/"];
    patch.lines().filter_map(|line| MARKS.iter().find_map(|mark| line.strip_prefix(mark))).map(plain).collect()
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
                let read = self.reads.get(path).is_some_and(|reads| reads.iter().any(|(a, b)| a <= from && b >= to));
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
            CallSubject::Read { path, from, to } if succeeded => self.reads.entry(path).or_default().push((from, to)),
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
        .flat_map(|item| item.entry.message.tool_calls().map(|call| ((item.block, call.id.as_str()), call)))
        .collect();
    let mut later = Later::default();
    let mut obsolete = HashSet::new();
    for (index, item) in items.iter().enumerate().rev().filter(|(_, item)| item.role() == Role::Tool) {
        let about = |result: &ToolResult| {
            let call = calls.get(&(item.block, result.tool_call_id.as_str()))?;
            Some((CallSubject::of(call)?, result.envelope.status))
        };
        let about: Vec<_> = item.entry.message.tool_results().map(about).collect();
        let covered = |one: &Option<(CallSubject, ToolStatus)>| one.as_ref().is_some_and(|(one, _)| later.covers(one));
        if !about.is_empty() && about.iter().all(covered) {
            obsolete.insert(index);
        }
        about.into_iter().flatten().for_each(|(subject, status)| later.note(subject, status));
    }
    obsolete
}

#[cfg(test)]
mod tests;
