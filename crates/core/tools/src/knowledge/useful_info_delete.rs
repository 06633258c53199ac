//! `useful_info_delete`: takes a file range out of view.

use async_trait::async_trait;
use haft_tool::{Access, Intent, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, settle};
use crate::knowledge::failure;
use crate::knowledge::useful_info_list;
use crate::manual::{Group, Manual};
use crate::spec_of;

const NAME: &str = "useful_info_delete";

static MANUAL: Manual = Manual {
    example_of: "Dropping a range that is no longer needed",
    example: r#"{"number": 2}"#,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The number of the range.
    #[schemars(range(min = 1))]
    number: u32,
}

/// The tool.
pub(crate) struct UsefulInfoDelete {
    spec: ToolSpec,
}

impl UsefulInfoDelete {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("useful_info_delete/prompt.md")) }
    }
}

#[async_trait]
impl Tool for UsefulInfoDelete {
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
    let Parameters { number } = parse_arguments(NAME, arguments)?;
    let deleted = context.useful.delete(number).await;
    let item = deleted.map_err(|error| failure(&error, "`useful_info_list` shows the numbers"))?;
    let text = format!("No longer kept in view: {}", useful_info_list::line(&item));
    Ok(Envelope::success(text).with_data(json!({ "item": item })).into())
}
