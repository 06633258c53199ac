//! `note_add`: adds a note to a folder or file.

use crate::knowledge::notes::StoredNotes;
use crate::knowledge::{failure, note_text, of_session, one_line, project_path};
use crate::on_files::off_thread;
use crate::prelude::*;

const NAME: &str = "note_add";

static MANUAL: Manual = Manual {
    set: Set::Extension,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteAddParameters {
    /// The folder or file; it must exist and lie in the project.
    path: String,
    /// What is worth knowing, in one to three sentences.
    note: String,
}

pub(crate) fn tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("note_add/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .runs(|context, parameters| Box::pin(run(context, parameters)))
}

async fn run(
    context: &ToolContext,
    NoteAddParameters { path, note }: NoteAddParameters,
) -> CallResult {
    let note = one_line(note_text("note", &note)?);
    let path = off_thread(context, move |scope| project_path(&scope.workspace, &path)).await?;
    let notes = of_session::<StoredNotes>(context)?;
    let note = notes
        .add(&path, &note)
        .await
        .map_err(|error| failure(&error, "try again"))?;
    let text = format!("Added note {} on `{}`.", note.id, note.path);
    Ok(Envelope::success(text)
        .with_data(json!({ "note": note }))
        .into())
}

#[cfg(test)]
mod tests;
