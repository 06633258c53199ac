//! Drafts of file changes, which are built before anything is written.
//!
//! Invariant: each file is loaded and checked only once, and every rejection happens before the
//! first file is changed. The change itself is made completely or not at all.

use std::fmt::{self, Write as _};

use haft_tool::{FileChange, ToolOutput};
use haft_types::{ChangeKind, Envelope};
use serde_json::{Map, Value, json};

use super::edit_report::{self, DEV_NULL, DiffBudget, TextDifference};
use super::source::{EditSource, EditableText, FreePath, SourceError};
use crate::failure::ToolFailure;
use crate::files::change::{self, ChangeAction, PlannedChange};
use crate::files::encoding::{DecodedText, decode_text};
use crate::scope::FileScope;

/// A number with its unit, such as "2 blocks". The unit is the tool's word for one of its edits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitCount(pub(crate) usize, pub(crate) &'static str);

impl fmt::Display for UnitCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, unit) = self;
        write!(f, "{count} {unit}{}", if *count == 1 { "" } else { "s" })
    }
}

/// The planned change of one file.
pub(crate) enum FileDraft {
    Add {
        place: FreePath,
        text: String,
    },
    Edit {
        old: Box<EditableText>,
        text: String,
        /// The number of edits that are applied to the file.
        applied: UnitCount,
        /// Sentences about the edits, for the model.
        remarks: Vec<String>,
    },
    Move {
        old: Box<EditableText>,
        to: FreePath,
        text: String,
        applied: UnitCount,
        remarks: Vec<String>,
    },
    /// Moves the file without changing its content. The file need not be text.
    Rename {
        old: Box<EditSource>,
        to: FreePath,
    },
    Delete {
        old: Box<EditSource>,
    },
}

/// A draft, and the bytes to write to its file.
struct EncodedDraft<'a> {
    draft: &'a FileDraft,
    bytes: Vec<u8>,
}

impl FileDraft {
    fn encode_content(&self) -> Result<Vec<u8>, SourceError> {
        match self {
            Self::Add { text, .. } => Ok(text.clone().into_bytes()),
            Self::Edit { old, text, .. } if *text == old.as_str() => Err(SourceError::NoChange {
                name: old.source.name.clone(),
            }),
            Self::Edit { old, text, .. } | Self::Move { old, text, .. } => old.encode(text),
            Self::Rename { old, .. } => Ok(old.loaded.bytes.clone()),
            Self::Delete { .. } => Ok(Vec::new()),
        }
    }
}

impl EncodedDraft<'_> {
    fn planned_changes(&self) -> Vec<PlannedChange<'_>> {
        let bytes = self.bytes.as_slice();
        match self.draft {
            FileDraft::Add {
                place: FreePath { path, name },
                ..
            } => {
                vec![PlannedChange {
                    path,
                    name,
                    step: ChangeAction::Create { bytes },
                }]
            }
            FileDraft::Edit { old, .. } => {
                let EditSource { path, name, loaded } = &old.source;
                vec![PlannedChange {
                    path,
                    name,
                    step: ChangeAction::Replace { old: loaded, bytes },
                }]
            }
            FileDraft::Move { old, to, .. } => plan_move(&old.source, to, bytes),
            FileDraft::Rename { old, to } => plan_move(old, to, bytes),
            FileDraft::Delete { old } => {
                let EditSource { path, name, loaded } = old.as_ref();
                vec![PlannedChange {
                    path,
                    name,
                    step: ChangeAction::Delete { old: loaded },
                }]
            }
        }
    }
}

fn plan_move<'a>(old: &'a EditSource, to: &'a FreePath, bytes: &'a [u8]) -> Vec<PlannedChange<'a>> {
    let EditSource { path, name, loaded } = old;
    let taken = PlannedChange {
        path,
        name,
        step: ChangeAction::Delete { old: loaded },
    };
    vec![
        taken,
        PlannedChange {
            path: &to.path,
            name: &to.name,
            step: ChangeAction::CreateLike {
                bytes,
                like: loaded,
            },
        },
    ]
}

/// The result of writing drafts to their files.
pub(crate) struct EditOutcome {
    /// The reports on the changed files, one for each file.
    pub(crate) files: Vec<EditedFile>,
    /// The states of the changed files, from which the read ledger is rebuilt when a conversation
    /// is resumed.
    context: Value,
    changes: Vec<FileChange>,
    notes: Option<String>,
}

/// The report on one file, as text for people and as data.
pub(crate) struct EditedFile {
    pub(crate) text: String,
    pub(crate) data: Map<String, Value>,
}

impl EditOutcome {
    /// Returns the result of a tool call that changed several files: `heading` first, then the
    /// report on each file.
    pub(crate) fn into_output(mut self, heading: &str, mut data: Map<String, Value>) -> ToolOutput {
        let mut text = heading.to_owned();
        let mut files = Vec::with_capacity(self.files.len());
        for file in std::mem::take(&mut self.files) {
            let _ = write!(text, "\n{}", file.text);
            files.push(Value::Object(file.data));
        }
        data.insert("files".into(), files.into());
        self.build_output(text, data)
    }

    /// Returns the result of a tool call that changed one file.
    pub(crate) fn into_single_output(mut self) -> ToolOutput {
        let Some(EditedFile { text, data }) = self.files.pop() else {
            return ToolOutput::default();
        };
        self.build_output(text, data)
    }

    fn build_output(mut self, mut text: String, mut data: Map<String, Value>) -> ToolOutput {
        if let Some(note) = self.notes.take() {
            let _ = write!(text, "\n{note}");
            data.insert("note".into(), note.into());
        }
        let mut envelope = Envelope::success(text).with_data(Value::Object(data));
        envelope.context = self.context;
        ToolOutput {
            changes: self.changes,
            ..envelope.into()
        }
    }
}

/// Returns the complete unified diffs of all drafts.
pub(crate) fn preview_drafts(drafts: &[FileDraft]) -> Result<String, ToolFailure> {
    let mut diffs = String::new();
    for draft in drafts {
        draft.encode_content()?;
        let diff = match draft {
            FileDraft::Add { place, text } => {
                edit_report::format_diff((DEV_NULL, &place.name), "", text)
            }
            FileDraft::Edit { old, text, .. } => {
                let name = old.source.name.as_str();
                edit_report::format_diff((name, name), old.as_str(), text)
            }
            FileDraft::Move { old, to, text, .. } => {
                edit_report::format_diff((&old.source.name, &to.name), old.as_str(), text)
            }
            FileDraft::Rename { old, to } => format!("--- {}\n+++ {}\n", old.name, to.name),
            FileDraft::Delete { old } => match decode_text(&old.loaded.bytes) {
                Some(DecodedText { text, .. }) => {
                    edit_report::format_diff((&old.name, DEV_NULL), &text, "")
                }
                None => format!("--- {}\n+++ {DEV_NULL}\n", old.name),
            },
        };
        diffs.push_str(&diff);
    }
    Ok(diffs)
}

/// Writes either all drafts or none.
pub(crate) fn write_drafts(
    scope: &FileScope,
    drafts: &[FileDraft],
) -> Result<EditOutcome, ToolFailure> {
    let mut ready = Vec::with_capacity(drafts.len());
    for draft in drafts {
        ready.push(EncodedDraft {
            draft,
            bytes: draft.encode_content()?,
        });
    }
    let changes: Vec<PlannedChange<'_>> = ready
        .iter()
        .flat_map(EncodedDraft::planned_changes)
        .collect();
    let done = change::apply_changes(scope, &changes)?;
    let mut room = DiffBudget::default();
    Ok(EditOutcome {
        files: drafts
            .iter()
            .map(|draft| report_draft(draft, &mut room))
            .collect(),
        context: done.ledger_context(&changes),
        changes: changes.iter().map(to_file_change).collect(),
        notes: done.join_notes(),
    })
}

fn to_file_change(change: &PlannedChange<'_>) -> FileChange {
    let kind = match change.step {
        ChangeAction::Create { .. } | ChangeAction::CreateLike { .. } => ChangeKind::Added,
        ChangeAction::Replace { .. } => ChangeKind::Modified,
        ChangeAction::Delete { .. } => ChangeKind::Deleted,
    };
    FileChange {
        path: change.path.to_owned(),
        kind,
    }
}

fn report_draft(draft: &FileDraft, room: &mut DiffBudget) -> EditedFile {
    let mut data = Map::new();
    let mut text;
    match draft {
        FileDraft::Add { place, text: new } => {
            let lines = new.lines().count();
            text = format!("Created `{}`: {}.", place.name, UnitCount(lines, "line"));
            data.extend(into_map(
                json!({ "path": place.name, "change": "created", "lines": lines }),
            ));
        }
        FileDraft::Rename { old, to } => {
            text = format!("Moved `{}` to `{}`.", old.name, to.name);
            data.extend(into_map(
                json!({ "path": to.name, "change": "moved", "from": old.name }),
            ));
        }
        FileDraft::Delete { old } => {
            text = format!("Deleted `{}`.", old.name);
            data.extend(into_map(json!({ "path": old.name, "change": "deleted" })));
        }
        FileDraft::Edit {
            old,
            text: new,
            applied,
            remarks,
        } => {
            let difference = TextDifference::from_texts(old.as_str(), new);
            text = format!(
                "Changed `{}`: {applied} applied, {difference}.",
                old.source.name
            );
            data.extend(into_map(
                json!({ "path": old.source.name, "change": "edited", "applied": applied.0 }),
            ));
            add_remarks(remarks, &mut text, &mut data);
            room.add_diff(&difference, &mut text, &mut data);
        }
        FileDraft::Move {
            old,
            to,
            text: new,
            applied,
            remarks,
        } => {
            let difference = TextDifference::from_texts(old.as_str(), new);
            let from = &old.source.name;
            text = format!(
                "Moved `{from}` to `{}`: {applied} applied, {difference}.",
                to.name
            );
            data.extend(into_map(
                json!({ "path": to.name, "change": "moved", "from": from, "applied": applied.0 }),
            ));
            add_remarks(remarks, &mut text, &mut data);
            room.add_diff(&difference, &mut text, &mut data);
        }
    }
    EditedFile { text, data }
}

fn add_remarks(remarks: &[String], text: &mut String, data: &mut Map<String, Value>) {
    for remark in remarks {
        let _ = write!(text, "\n{remark}");
    }
    if !remarks.is_empty() {
        data.insert("fallback".into(), "whitespace".into());
    }
}

fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
