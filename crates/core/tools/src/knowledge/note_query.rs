//! `note_query`: lists the notes of the project.

use haft_text::{CutLimits, cut_lines};
use haft_tool::OutputLimits;

use crate::knowledge::notes::{Note, StoredNotes};
use crate::knowledge::{failure_from_port, get_session_value, resolve_note_path, to_one_line};
use crate::on_files::run_off_thread;
use crate::prelude::*;

const NAME: &str = "note_query";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteQueryParameters {
    /// A folder or file: the notes on it, above it and below it; all notes when absent.
    path: Option<String>,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("note_query/prompt"),
        &MANUAL,
        Access::Read,
        |_| Intent::Nothing,
    )
    .with_function(|context, parameters| Box::pin(query_notes(context, parameters)))
}

async fn query_notes(
    context: &ToolContext,
    NoteQueryParameters { path }: NoteQueryParameters,
) -> CallResult {
    let path = match path {
        Some(path) => Some(
            run_off_thread(context, move |scope| {
                resolve_note_path(&scope.workspace, &path)
            })
            .await?,
        ),
        None => None,
    };
    let mut notes = get_session_value::<StoredNotes>(context)?
        .list()
        .await
        .map_err(|error| failure_from_port(&error, "try again"))?;
    if let Some(path) = &path {
        notes.retain(|note| note.concerns(path));
    }
    Ok(build_envelope(&notes, path.as_deref(), context.limits).into())
}

fn build_envelope(notes: &[Note], path: Option<&str>, limits: OutputLimits) -> Envelope {
    let data = json!({ "path": path, "notes": notes });
    if notes.is_empty() {
        let about = path.map_or_else(
            || "in this project".to_owned(),
            |path| format!("about `{path}`"),
        );
        return Envelope::success(format!("There are no notes {about}.")).with_data(data);
    }
    let lines: Vec<_> = notes.iter().map(format_note).collect();
    let cut = cut_lines(
        &lines.join("\n"),
        CutLimits {
            lines: limits.lines,
            bytes: limits.bytes,
        },
    );
    Envelope::success(cut.text).with_data(data)
}

fn format_note(note: &Note) -> String {
    format!("{} `{}`: {}", note.id, note.path, to_one_line(&note.note))
}
