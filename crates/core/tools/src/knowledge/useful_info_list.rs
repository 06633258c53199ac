//! `useful_info_list`: the file ranges kept in view.

use async_trait::async_trait;
use haft_tool::{Access, Intent, Tool, ToolContext, ToolOutput, UsefulItem, parse_arguments};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, settle};
use crate::knowledge::{failure, one_line};
use crate::manual::{Group, Manual};
use crate::spec_of;

const NAME: &str = "useful_info_list";

static MANUAL: Manual =
    Manual { example_of: "Seeing what is kept in view", example: "{}", ..Manual::of(Group::Knowledge) };

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {}

/// The tool.
pub(crate) struct UsefulInfoList {
    spec: ToolSpec,
}

impl UsefulInfoList {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("useful_info_list/prompt.md")) }
    }
}

#[async_trait]
impl Tool for UsefulInfoList {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn intent(&self, _arguments: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        settle(run(context, arguments).await)
    }
}

async fn run(context: &ToolContext, arguments: Value) -> Result<ToolOutput, Failure> {
    let Parameters {} = parse_arguments(NAME, arguments)?;
    let items = context.useful.list().await.map_err(|error| failure(&error, "try again"))?;
    let lines: Vec<_> = items.iter().map(line).collect();
    let text = if items.is_empty() { "No useful information is kept.".to_owned() } else { lines.join("\n") };
    Ok(Envelope::success(text).with_data(json!({ "items": items })).into())
}

/// A range as these tools show it.
pub(crate) fn line(item: &UsefulItem) -> String {
    let UsefulItem { number, path, start_line, end_line, description } = item;
    format!("{number}. `{path}` lines {start_line}-{end_line}: {}", one_line(description))
}
