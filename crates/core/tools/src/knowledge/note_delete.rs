//! `note_delete`: deletes a note.

use crate::knowledge::notes::StoredNotes;
use crate::knowledge::{failure, of_session, one_line};
use crate::prelude::*;

const NAME: &str = "note_delete";

static MANUAL: Manual = Manual {
    set: Set::Extension,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteDeleteParameters {
    /// The id of the note, such as `n7`.
    note_id: String,
}

pub(crate) fn tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("note_delete/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .runs(|context, parameters| Box::pin(run(context, parameters)))
}

async fn run(
    context: &ToolContext,
    NoteDeleteParameters { note_id }: NoteDeleteParameters,
) -> CallResult {
    let notes = of_session::<StoredNotes>(context)?;
    let deleted = notes.delete(&note_id).await;
    let note = deleted.map_err(|error| {
        failure(
            &error,
            context
                .tools
                .hint("note_query", "`note_query` shows the ids"),
        )
    })?;
    let text = format!(
        "Deleted note {} on `{}`: {}",
        note.id,
        note.path,
        one_line(&note.note)
    );
    Ok(Envelope::success(text)
        .with_data(json!({ "note": note }))
        .into())
}
