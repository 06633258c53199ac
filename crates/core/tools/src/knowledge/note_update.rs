//! `note_update`: replaces the text of a note.

use crate::knowledge::notes::StoredNotes;
use crate::knowledge::{check_note_text, failure_from_port, get_session_value, to_one_line};
use crate::prelude::*;

const NAME: &str = "note_update";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteUpdateParameters {
    /// The id of the note, such as `n7`.
    note_id: String,
    /// The whole new text, in one to three sentences.
    note: String,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("note_update/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .with_function(|context, parameters| Box::pin(update_note(context, parameters)))
}

async fn update_note(
    context: &ToolContext,
    NoteUpdateParameters { note_id, note }: NoteUpdateParameters,
) -> CallResult {
    let note = to_one_line(check_note_text("note", &note)?);
    let notes = get_session_value::<StoredNotes>(context)?;
    let updated = notes.update(&note_id, &note).await;
    let note = updated.map_err(|error| {
        failure_from_port(
            &error,
            context
                .tools
                .hint_if_known("note_query", "`note_query` shows the ids"),
        )
    })?;
    let text = format!("Changed note {} on `{}`.", note.id, note.path);
    Ok(Envelope::success(text)
        .with_data(json!({ "note": note }))
        .into())
}
