//! `note_add`: adds a note to a folder or file.

use crate::knowledge::notes::StoredNotes;
use crate::knowledge::{
    check_note_text, failure_from_port, get_session_value, resolve_note_path, to_one_line,
};
use crate::on_files::run_off_thread;
use crate::prelude::*;

const NAME: &str = "note_add";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteAddParameters {
    /// The folder or file; it must exist and lie in the project.
    path: String,
    /// What is worth knowing, in one to three sentences.
    note: String,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("note_add/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .with_function(|context, parameters| Box::pin(add_note(context, parameters)))
}

async fn add_note(
    context: &ToolContext,
    NoteAddParameters { path, note }: NoteAddParameters,
) -> CallResult {
    let note = to_one_line(check_note_text("note", &note)?);
    let path = run_off_thread(context, move |scope| {
        resolve_note_path(&scope.workspace, &path)
    })
    .await?;
    let notes = get_session_value::<StoredNotes>(context)?;
    let note = notes
        .add(&path, &note)
        .await
        .map_err(|error| failure_from_port(&error, "try again"))?;
    let text = format!("Added note {} on `{}`.", note.id, note.path);
    Ok(Envelope::success(text)
        .with_data(json!({ "note": note }))
        .into())
}

#[cfg(test)]
mod tests;
