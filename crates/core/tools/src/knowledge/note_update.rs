//! `note_update`: replaces the text of a note.

use async_trait::async_trait;
use haft_tool::{Access, Intent, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, settle};
use crate::knowledge::{failure, one_line, words};
use crate::manual::{Group, Manual};
use crate::spec_of;

const NAME: &str = "note_update";

static MANUAL: Manual = Manual {
    example_of: "Correcting a note",
    example: r#"{"note_id": "n3", "note": "Generated from grammar.pest by `make grammar`."}"#,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The id of the note, such as `n7`.
    note_id: String,
    /// The whole new text, in one to three sentences.
    note: String,
}

/// The tool.
pub(crate) struct NoteUpdate {
    spec: ToolSpec,
}

impl NoteUpdate {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("note_update/prompt.md")) }
    }
}

#[async_trait]
impl Tool for NoteUpdate {
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
    let Parameters { note_id, note } = parse_arguments(NAME, arguments)?;
    let note = one_line(words("note", &note)?);
    let updated = context.notes.update(&note_id, &note).await;
    let note = updated.map_err(|error| failure(&error, "`note_query` shows the ids"))?;
    let text = format!("Changed note {} on `{}`.", note.id, note.path);
    Ok(Envelope::success(text).with_data(json!({ "note": note })).into())
}
