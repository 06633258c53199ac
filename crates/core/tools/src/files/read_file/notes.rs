//! Adds the stored notes on a file to the result of reading the file.

use std::path::Path;

use haft_tool::{ToolContext, ToolNames};
use haft_types::Envelope;
use serde_json::{Value, json};

use super::add_line;
use crate::knowledge::notes::StoredNotes;
use crate::knowledge::{project_relative_path, to_one_line};

pub(super) async fn add_notes(context: &ToolContext, path: &Path, envelope: &mut Envelope) {
    let Some(name) = project_relative_path(&context.workspace, path) else {
        return;
    };
    let Some(stored) = context.state.get::<StoredNotes>() else {
        return;
    };
    let notes = match stored.list().await {
        Ok(notes) => notes,
        // The file itself was read, so this failure is only reported.
        Err(error) => {
            return add_line(
                &mut envelope.text,
                &format!("[Notes on this file could not be read: {error}.]"),
            );
        }
    };
    let own: Vec<_> = notes.iter().filter(|note| note.path == name).collect();
    let (older, newest) = stored.split_shown(&own);
    if newest.is_empty() {
        return;
    }
    add_line(
        &mut envelope.text,
        &format_notes_heading(&name, older.len(), &context.tools),
    );
    for note in newest {
        add_line(
            &mut envelope.text,
            &format!("- {}: {}", note.id, to_one_line(&note.note)),
        );
    }
    let shown: Value = newest
        .iter()
        .map(|note| json!({ "id": note.id, "note": note.note }))
        .collect();
    envelope.data["notes"] = shown;
}

fn format_notes_heading(name: &str, older: usize, tools: &ToolNames) -> String {
    match older {
        0 => format!("[Notes on `{name}`:]"),
        _ if tools.contains("note_query") => {
            format!("[The newest notes on `{name}`; `note_query` shows {older} older ones:]")
        }
        _ => format!("[The newest notes on `{name}`; there are {older} older ones:]"),
    }
}
