//! Reminders: role, TODO list, useful information and folder notes, sent as one run of user
//! messages.
//!
//! The caller renders each kind's text afresh for every request, with the helpers here; this module
//! adds the headings and keeps the order. Nothing here is stored in a conversation.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_types::{Entry, PromptLanguage, Role, prompt};

use crate::memo::EntryMaker;
use crate::policy::Policy;

/// The texts of the run, each without its heading. An empty one is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reminders {
    /// Who the model is: [`RoleParts::join`].
    pub role: Option<String>,
    /// The TODO list: [`todo_text`].
    pub todo: Option<String>,
    /// File ranges worth knowing: [`useful_text`].
    pub useful: Option<String>,
    /// Notes on folders: [`folder_notes_text`].
    pub folder_notes: Option<String>,
    /// Date and time, sent only with `context.clock`: part of the role, or of the useful
    /// information without one.
    pub clock: Option<String>,
}

impl Reminders {
    /// The reminders a request was sent with, from the owners and texts of its segments: the newest
    /// copy of each kind. `None` where it had none.
    pub fn recorded<'a>(segments: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut texts: [Option<Option<String>>; KINDS.len()] = Default::default();
        for (owner, text) in segments {
            if let Some(index) = KINDS.iter().position(|kind| kind.owner == owner) {
                let text = untagged(text);
                let said = text
                    .strip_prefix(KINDS[index].heading)
                    .unwrap_or(text)
                    .trim_start_matches('\n');
                texts[index] = Some((said != NOTHING).then(|| said.to_owned()));
            }
        }
        if texts.iter().all(Option::is_none) {
            return None;
        }
        let [role, todo, useful, folder_notes] = texts.map(Option::flatten);
        // The clock, where it was told, is part of a text by now.
        Some(Self {
            role,
            todo,
            useful,
            folder_notes,
            clock: None,
        })
    }

    /// The run: owner and message of each kind that has something to say, in order.
    pub(crate) fn run(
        &self,
        policy: &Policy,
        maker: EntryMaker<'_>,
    ) -> Vec<(&'static str, Arc<Entry>)> {
        let clock = filled(self.clock.as_ref())
            .filter(|_| policy.clock)
            .map(|clock| format!("Date and time: {clock}"));
        let role = filled(self.role.as_ref());
        let useful = filled(self.useful.as_ref());
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
            filled(self.todo.as_ref()),
            useful.as_deref(),
            filled(self.folder_notes.as_ref()),
        ];
        let present = KINDS
            .into_iter()
            .zip(texts)
            .filter_map(|(kind, text)| text.map(|text| (kind, text)));
        present
            .map(|(kind, text)| (kind.owner, message(maker, kind.owner, &kind.headed(text))))
            .collect()
    }
}

/// One of the four kinds of reminders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReminderKind {
    /// Who puts it into a request.
    pub(crate) owner: &'static str,
    heading: &'static str,
}

impl ReminderKind {
    /// The text under its heading, in its tag.
    pub(crate) fn headed(self, text: &str) -> String {
        tagged(&format!("{}\n\n{text}", self.heading))
    }
}

/// A text that haft writes by itself in the user's place, in the tag by which the system message
/// explains it. What the text quotes of files and output cannot end the tag.
pub fn tagged(text: &str) -> String {
    format!(
        "{OPENING_TAG}\n{}\n{CLOSING_TAG}",
        text.trim_end().replace(CLOSING_TAG, "</ system-reminder>")
    )
}

/// The text without that tag; as it is where it has none, as in conversations stored by earlier
/// versions.
pub fn untagged(text: &str) -> &str {
    let inside = text
        .strip_prefix(OPENING_TAG)
        .and_then(|text| text.trim_end().strip_suffix(CLOSING_TAG));
    inside.map_or(text, str::trim)
}

const OPENING_TAG: &str = "<system-reminder>";
const CLOSING_TAG: &str = "</system-reminder>";

/// Who puts the role definition there.
pub(crate) const ROLE: &str = "reminder:role";
/// Who puts the list of things to do there.
pub(crate) const TODO: &str = "reminder:todo";

/// The four kinds, in their order.
pub(crate) const KINDS: [ReminderKind; 4] = [
    ReminderKind {
        owner: ROLE,
        heading: "## Agent Role Definition",
    },
    ReminderKind {
        owner: TODO,
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

/// What is said of a kind that has nothing to say any more.
pub(crate) const NOTHING: &str =
    "Empty now: what stands under this heading further up no longer holds.";

fn filled(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim_end())
        .filter(|text| !text.is_empty())
}

/// A user message of the engine's own; equal text gives the equal message.
pub(crate) fn message(maker: EntryMaker<'_>, owner: &str, text: &str) -> Arc<Entry> {
    maker.made(owner, Role::User, text)
}

/// The pieces of an assembled role. Missing ones are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleParts<'a> {
    /// The role definition itself.
    pub role: Option<&'a str>,
    /// The project's AGENTS.md.
    pub agents_md: Option<&'a str>,
    /// The environment.
    pub environment: Option<&'a str>,
    /// Guidance for the platform.
    pub platform: Option<&'a str>,
    /// For sub-agents: how to finish.
    pub completion: Option<&'a str>,
}

impl RoleParts<'_> {
    /// All parts, joined by empty lines; empty when there are none.
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

/// A sub-agent without a role definition; it does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sub-agent `{name}` has no role definition and cannot start; write one in `{file}`")]
pub struct MissingRole {
    /// The sub-agent.
    pub name: String,
    /// The file to fix.
    pub file: String,
}

/// Checks that a sub-agent has a role definition.
pub fn check_subagent_role(name: &str, role: Option<&str>, file: &str) -> Result<(), MissingRole> {
    match role {
        Some(role) if !role.trim().is_empty() => Ok(()),
        _ => Err(MissingRole {
            name: name.to_owned(),
            file: file.to_owned(),
        }),
    }
}

/// How far a TODO item has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TodoProgress {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

/// One item of a TODO list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Todo<'a> {
    /// What is to be done.
    pub content: &'a str,
    /// How far it has come.
    pub progress: TodoProgress,
}

/// Whose TODO list is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOwner {
    /// The reader's own.
    Reader,
    /// The main agent's, shown to a sub-agent.
    MainAgent,
}

/// The TODO list as text; empty for an empty list.
pub fn todo_text(items: &[Todo<'_>], owner: ListOwner, language: PromptLanguage) -> String {
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
        let _ = writeln!(text, "- {mark} {}", one_line(item.content));
    }
    text
}

/// A file range worth knowing, as it is on disk now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsefulRange<'a> {
    /// The file.
    pub path: &'a str,
    /// First line, from 1.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// Why it is worth knowing.
    pub description: &'a str,
    /// The lines, or why they could not be read.
    pub content: Result<&'a str, &'a str>,
}

/// Useful information as text; empty without any.
pub fn useful_text(ranges: &[UsefulRange<'_>]) -> String {
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
            one_line(description)
        );
        match content {
            Ok(content) => {
                let fence = fence_for(content);
                let _ = writeln!(text, "{fence}\n{}\n{fence}", content.trim_end_matches('\n'));
            }
            Err(reason) => {
                let _ = writeln!(text, "(cannot be read now: {reason})");
            }
        }
    }
    text
}

/// The notes on one folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderNotes<'a> {
    /// The folder.
    pub folder: &'a str,
    /// Its notes, newest last.
    pub notes: &'a [String],
}

/// Folder notes as text, in the order given (shallow to deep); empty without any.
pub fn folder_notes_text(folders: &[FolderNotes<'_>]) -> String {
    let mut text = String::new();
    for FolderNotes { folder, notes } in folders {
        if notes.is_empty() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}### `{folder}`\n");
        for note in *notes {
            let _ = writeln!(text, "- {}", one_line(note));
        }
    }
    text
}

/// The text on one line: list items must stay list items.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A fence longer than any run of backticks inside.
fn fence_for(content: &str) -> String {
    let longest = content.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests;
