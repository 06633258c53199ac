//! Reminders: role, TODO list, useful information and folder notes, sent as one run of user
//! messages.
//!
//! The caller renders the text of each kind for every request, with the helpers of this module,
//! which adds the headings and fixes the order. Reminders are never stored in a conversation.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_types::{Entry, PromptLanguage, Role, prompt};

use crate::memo::EntryMaker;
use crate::policy::Policy;

/// The texts of the reminders, without headings. Empty texts are left out of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reminders {
    /// The role of the model, from [`RoleParts::join`].
    pub role: Option<String>,
    /// The TODO list, as formatted by [`format_todo_list`].
    pub todo: Option<String>,
    /// The file ranges to keep in mind, as formatted by [`format_useful_ranges`].
    pub useful: Option<String>,
    /// The notes on folders, as formatted by [`format_folder_notes`].
    pub folder_notes: Option<String>,
    /// The date and time, sent only if `context.clock` is set. They are sent in the role reminder,
    /// or with the useful information if there is no role.
    pub clock: Option<String>,
}

impl Reminders {
    /// Restores the reminders of a sent request from the owners and texts of its segments, using
    /// the newest copy of each reminder. Returns `None` if the request had no reminders.
    pub fn from_segments<'a>(segments: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut texts: [Option<Option<String>>; KINDS.len()] = Default::default();
        for (owner, text) in segments {
            if let Some(index) = KINDS.iter().position(|kind| kind.owner == owner) {
                let text = strip_reminder_tag(text);
                let said = text
                    .strip_prefix(KINDS[index].heading)
                    .unwrap_or(text)
                    .trim_start_matches('\n');
                texts[index] = Some((said != EMPTY_KIND_TEXT).then(|| said.to_owned()));
            }
        }
        if texts.iter().all(Option::is_none) {
            return None;
        }
        let [role, todo, useful, folder_notes] = texts.map(Option::flatten);
        // A clock that was sent is part of one of the texts by now.
        Some(Self {
            role,
            todo,
            useful,
            folder_notes,
            clock: None,
        })
    }

    /// Returns a message, and the name of its owner, for each kind of reminder that has text, in
    /// sending order.
    pub(crate) fn build_run(
        &self,
        policy: &Policy,
        maker: EntryMaker<'_>,
    ) -> Vec<(&'static str, Arc<Entry>)> {
        let clock = filter_non_empty(self.clock.as_ref())
            .filter(|_| policy.clock)
            .map(|clock| format!("Date and time: {clock}"));
        let role = filter_non_empty(self.role.as_ref());
        let useful = filter_non_empty(self.useful.as_ref());
        let (role, useful) = match (role, clock) {
            (role, None) => (role.map(str::to_owned), useful.map(str::to_owned)),
            (Some(role), Some(clock)) => (
                Some(format!("{role}\n\n{clock}")),
                useful.map(str::to_owned),
            ),
            (None, Some(clock)) => (
                None,
                Some(useful.map_or(clock.clone(), |useful| format!("{clock}\n\n{useful}"))),
            ),
        };
        let texts = [
            role.as_deref(),
            filter_non_empty(self.todo.as_ref()),
            useful.as_deref(),
            filter_non_empty(self.folder_notes.as_ref()),
        ];
        let present = KINDS
            .into_iter()
            .zip(texts)
            .filter_map(|(kind, text)| text.map(|text| (kind, text)));
        present
            .map(|(kind, text)| {
                (
                    kind.owner,
                    reminder_message(maker, kind.owner, &kind.format_with_heading(text)),
                )
            })
            .collect()
    }
}

/// A kind of reminder: role, TODO list, useful information, or folder notes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReminderKind {
    /// The owner of the messages of this kind, such as `reminder:todo`.
    pub(crate) owner: &'static str,
    heading: &'static str,
}

impl ReminderKind {
    /// Returns `text` below the heading of this kind of reminder, inside the reminder tag.
    pub(crate) fn format_with_heading(self, text: &str) -> String {
        add_reminder_tag(&format!("{}\n\n{text}", self.heading))
    }
}

/// Wraps a text in the reminder tag, which the system message explains to the model. File contents
/// or output quoted in the text cannot close the tag.
pub fn add_reminder_tag(text: &str) -> String {
    format!(
        "{OPENING_TAG}\n{}\n{CLOSING_TAG}",
        text.trim_end().replace(CLOSING_TAG, "</ system-reminder>")
    )
}

/// Returns the text without the reminder tag. Text without a tag is returned unchanged: earlier
/// versions stored reminders without it.
pub fn strip_reminder_tag(text: &str) -> &str {
    let inside = text
        .strip_prefix(OPENING_TAG)
        .and_then(|text| text.trim_end().strip_suffix(CLOSING_TAG));
    inside.map_or(text, str::trim)
}

const OPENING_TAG: &str = "<system-reminder>";
const CLOSING_TAG: &str = "</system-reminder>";

/// The owner of the role reminder.
pub(crate) const ROLE_OWNER: &str = "reminder:role";
/// The owner of the TODO reminder.
pub(crate) const TODO_OWNER: &str = "reminder:todo";

/// The four kinds of reminders, in sending order.
pub(crate) const KINDS: [ReminderKind; 4] = [
    ReminderKind {
        owner: ROLE_OWNER,
        heading: "## Agent Role Definition",
    },
    ReminderKind {
        owner: TODO_OWNER,
        heading: "## TODO List",
    },
    ReminderKind {
        owner: "reminder:useful",
        heading: "## Useful Information",
    },
    ReminderKind {
        owner: "reminder:notes",
        heading: "## Folder Notes",
    },
];

/// The text that replaces an earlier reminder whose content has since become empty.
pub(crate) const EMPTY_KIND_TEXT: &str =
    "Empty now: what stands under this heading further up no longer holds.";

fn filter_non_empty(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim_end())
        .filter(|text| !text.is_empty())
}

/// Returns a reminder as a user message; equal texts of one owner give equal messages.
pub(crate) fn reminder_message(maker: EntryMaker<'_>, owner: &str, text: &str) -> Arc<Entry> {
    maker.engine_entry(owner, Role::User, text)
}

/// The parts of the role reminder. Missing parts are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleParts<'a> {
    /// The role definition.
    pub role: Option<&'a str>,
    /// The content of the project's AGENTS.md.
    pub agents_md: Option<&'a str>,
    /// The operating system, the shell and the working folder.
    pub environment: Option<&'a str>,
    /// Advice for the platform that haft runs on.
    pub platform: Option<&'a str>,
    /// Instructions for a sub-agent on how to finish.
    pub completion: Option<&'a str>,
}

impl RoleParts<'_> {
    /// Joins all parts with empty lines between them.
    pub fn join(&self) -> String {
        let parts = [
            self.role,
            self.agents_md,
            self.environment,
            self.platform,
            self.completion,
        ];
        let parts: Vec<_> = parts
            .into_iter()
            .flatten()
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect();
        parts.join("\n\n")
    }
}

/// The error for a sub-agent that cannot start because it has no role definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sub-agent `{name}` has no role definition and cannot start; write one in `{file}`")]
pub struct MissingRole {
    /// The name of the sub-agent.
    pub name: String,
    /// The file in which the role definition is missing.
    pub file: String,
}

/// Returns an error if a sub-agent has no role definition.
pub fn check_subagent_role(name: &str, role: Option<&str>, file: &str) -> Result<(), MissingRole> {
    match role {
        Some(role) if !role.trim().is_empty() => Ok(()),
        _ => Err(MissingRole {
            name: name.to_owned(),
            file: file.to_owned(),
        }),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TodoProgress {
    Pending,
    InProgress,
    Completed,
}

/// One item of a TODO list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Todo<'a> {
    /// The task to do.
    pub content: &'a str,
    pub progress: TodoProgress,
}

/// The agent whose TODO list is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOwner {
    /// The TODO list belongs to the agent that receives the reminder.
    Reader,
    /// The TODO list belongs to the main agent and is shown to a sub-agent.
    MainAgent,
}

/// Formats the TODO list; the text is empty if there are no items.
pub fn format_todo_list(items: &[Todo<'_>], owner: ListOwner, language: PromptLanguage) -> String {
    let mut text = String::new();
    if items.is_empty() {
        return text;
    }
    let whose = match owner {
        ListOwner::Reader => prompt!("../../templates/todo"),
        ListOwner::MainAgent => prompt!("../../templates/todo_of_main"),
    };
    text.extend([whose.text(language), "\n\n"]);
    for item in items {
        let mark = match item.progress {
            TodoProgress::Pending => "[ ]",
            TodoProgress::InProgress => "[~]",
            TodoProgress::Completed => "[x]",
        };
        let _ = writeln!(text, "- {mark} {}", to_one_line(item.content));
    }
    text
}

/// A file range that the model should keep in mind, with its current content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsefulRange<'a> {
    pub path: &'a str,
    /// The number of the first line, counted from 1.
    pub start_line: u32,
    /// The number of the last line, counted from 1.
    pub end_line: u32,
    /// The reason to keep the range in mind.
    pub description: &'a str,
    /// The text of the range, or the reason why the lines could not be read.
    pub content: Result<&'a str, &'a str>,
}

/// Formats the ranges for the reminder; the text is empty if there are no ranges.
pub fn format_useful_ranges(ranges: &[UsefulRange<'_>]) -> String {
    let mut text = String::new();
    for range in ranges {
        let UsefulRange {
            path,
            start_line,
            end_line,
            description,
            content,
        } = range;
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(
            text,
            "{gap}### `{path}` lines {start_line}-{end_line}: {}\n",
            to_one_line(description)
        );
        match content {
            Ok(content) => {
                let fence = choose_fence(content);
                let _ = writeln!(text, "{fence}\n{}\n{fence}", content.trim_end_matches('\n'));
            }
            Err(reason) => {
                let _ = writeln!(text, "(cannot be read now: {reason})");
            }
        }
    }
    text
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderNotes<'a> {
    pub folder: &'a str,
    /// The notes on the folder, from oldest to newest.
    pub notes: &'a [String],
}

/// Formats the notes of all folders in the given order (shallow to deep); the text is empty if
/// there are no notes.
pub fn format_folder_notes(folders: &[FolderNotes<'_>]) -> String {
    let mut text = String::new();
    for FolderNotes { folder, notes } in folders {
        if notes.is_empty() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}### `{folder}`\n");
        for note in *notes {
            let _ = writeln!(text, "- {}", to_one_line(note));
        }
    }
    text
}

/// Replaces the line breaks of a text by spaces, so that the text fits in one list item.
fn to_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a code fence longer than any run of backticks in `content`.
fn choose_fence(content: &str) -> String {
    let longest = content.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests;
