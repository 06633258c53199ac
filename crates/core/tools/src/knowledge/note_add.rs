//! `note_add`: writes a note on a folder or file.

use async_trait::async_trait;
use haft_tool::{Access, Intent, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, settle};
use crate::knowledge::{failure, one_line, project_path, words};
use crate::manual::{Group, Manual};
use crate::scope::off_thread;
use crate::spec_of;

const NAME: &str = "note_add";

static MANUAL: Manual = Manual {
    example_of: "Leaving a note for later conversations",
    example: r#"{"path": "src/parser.rs", "note": "Generated from grammar.pest; change that file instead."}"#,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The folder or file.
    path: String,
    /// What is worth knowing, in one to three sentences.
    note: String,
}

/// The tool.
pub(crate) struct NoteAdd {
    spec: ToolSpec,
}

impl NoteAdd {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("note_add/prompt.md")) }
    }
}

#[async_trait]
impl Tool for NoteAdd {
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
    let Parameters { path, note } = parse_arguments(NAME, arguments)?;
    let note = one_line(words("note", &note)?);
    let path = off_thread(context, move |scope| project_path(&scope.workspace, &path)).await?;
    let note = context.notes.add(&path, &note).await.map_err(|error| failure(&error, "try again"))?;
    let text = format!("Added note {} on `{}`.", note.id, note.path);
    Ok(Envelope::success(text).with_data(json!({ "note": note })).into())
}

#[cfg(test)]
mod tests;
