//! `note_delete`: deletes a note.

use crate::knowledge::notes::StoredNotes;
use crate::knowledge::{failure_from_port, get_session_value, to_one_line};
use crate::prelude::*;

const NAME: &str = "note_delete";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteDeleteParameters {
    /// The id of the note, such as `n7`.
    note_id: String,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("note_delete/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .with_function(|context, parameters| Box::pin(delete_note(context, parameters)))
}

async fn delete_note(
    context: &ToolContext,
    NoteDeleteParameters { note_id }: NoteDeleteParameters,
) -> CallResult {
    let notes = get_session_value::<StoredNotes>(context)?;
    let deleted = notes.delete(&note_id).await;
    let note = deleted.map_err(|error| {
        failure_from_port(
            &error,
            context
                .tools
                .hint_if_known("note_query", "`note_query` shows the ids"),
        )
    })?;
    let text = format!(
        "Deleted note {} on `{}`: {}",
        note.id,
        note.path,
        to_one_line(&note.note)
    );
    Ok(Envelope::success(text)
        .with_data(json!({ "note": note }))
        .into())
}
