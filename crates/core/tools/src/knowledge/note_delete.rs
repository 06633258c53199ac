//! `note_delete`: takes a note away.

use async_trait::async_trait;
use haft_tool::{Access, Intent, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, settle};
use crate::knowledge::{failure, one_line};
use crate::manual::{Group, Manual};
use crate::spec_of;

const NAME: &str = "note_delete";

static MANUAL: Manual = Manual {
    example_of: "Removing a note that no longer holds",
    example: r#"{"note_id": "n3"}"#,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The id of the note, such as `n7`.
    note_id: String,
}

/// The tool.
pub(crate) struct NoteDelete {
    spec: ToolSpec,
}

impl NoteDelete {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("note_delete/prompt.md")) }
    }
}

#[async_trait]
impl Tool for NoteDelete {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::State
    }

    fn intent(&self, _arguments: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        settle(run(context, arguments).await)
    }
}

async fn run(context: &ToolContext, arguments: Value) -> Result<ToolOutput, Failure> {
    let Parameters { note_id } = parse_arguments(NAME, arguments)?;
    let deleted = context.notes.delete(&note_id).await;
    let note = deleted.map_err(|error| failure(&error, "`note_query` shows the ids"))?;
    let text = format!("Deleted note {} on `{}`: {}", note.id, note.path, one_line(&note.note));
    Ok(Envelope::success(text).with_data(json!({ "note": note })).into())
}
