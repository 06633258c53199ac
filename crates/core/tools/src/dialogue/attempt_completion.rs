//! `attempt_completion`: the model's word that the task is done.

use async_trait::async_trait;
use haft_tool::{Access, Flow, Intent, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, settle};
use crate::manual::{Group, Manual};
use crate::spec_of;

const NAME: &str = "attempt_completion";

static MANUAL: Manual = Manual {
    example_of: "Reporting that the task is done",
    example: r#"{"result": "Names may now be 64 characters long; the tests of the parser pass.", "command": "cargo test -p parser"}"#,
    ..Manual::of(Group::Dialogue)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The final report.
    result: String,
    /// A command that shows the result.
    command: Option<String>,
}

/// The tool.
pub(crate) struct AttemptCompletion {
    spec: ToolSpec,
}

impl AttemptCompletion {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("attempt_completion/prompt.md")) }
    }
}

#[async_trait]
impl Tool for AttemptCompletion {
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

    async fn call(&self, _: &ToolContext, arguments: Value) -> ToolOutput {
        settle(complete(arguments))
    }
}

fn complete(arguments: Value) -> Result<ToolOutput, Failure> {
    let Parameters { result, command } = parse_arguments(NAME, arguments)?;
    if result.trim().is_empty() {
        return Err(Failure::new("invalid_arguments", "`result` is empty; report what was done"));
    }
    let mut data = json!({ "result": result });
    if let Some(command) = &command {
        data["command"] = command.as_str().into();
    }
    let envelope = Envelope::success("The result was presented to the user.").with_data(data);
    Ok(ToolOutput { flow: Flow::Complete { result, command }, ..envelope.into() })
}

#[cfg(test)]
mod tests;
