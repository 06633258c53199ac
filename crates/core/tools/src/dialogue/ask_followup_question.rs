//! `ask_followup_question`: hands a question to the user; the engine puts the answer in place of the result.

use async_trait::async_trait;
use haft_tool::{Access, Flow, Intent, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, settle};
use crate::manual::{Group, Manual};
use crate::spec_of;

const NAME: &str = "ask_followup_question";

static MANUAL: Manual = Manual {
    example_of: "Asking for a decision that only the user can take",
    example: r#"{"question": "Should names that are too long be refused or cut?", "options": ["Refuse them", "Cut them"]}"#,
    ..Manual::of(Group::Dialogue)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The question.
    question: String,
    /// Short answers to choose from.
    options: Option<Vec<String>>,
}

/// The tool.
pub(crate) struct AskFollowupQuestion {
    spec: ToolSpec,
}

impl AskFollowupQuestion {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("ask_followup_question/prompt.md")) }
    }
}

#[async_trait]
impl Tool for AskFollowupQuestion {
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
        settle(ask(arguments))
    }
}

fn ask(arguments: Value) -> Result<ToolOutput, Failure> {
    let Parameters { question, options } = parse_arguments(NAME, arguments)?;
    if question.trim().is_empty() {
        return Err(Failure::new("invalid_arguments", "`question` is empty; say what you need to know"));
    }
    let options = options.unwrap_or_default();
    let envelope =
        Envelope::success("The user was asked.").with_data(json!({ "question": question, "options": options }));
    Ok(ToolOutput { flow: Flow::Ask { question, options }, ..envelope.into() })
}

#[cfg(test)]
mod tests;
