//! `use_tool`: calls a deferred tool by its name.
//!
//! A valid call never reaches this tool: [`ToolCall::resolve_indirect`] replaces it by a call of
//! the named tool before any check, so that permission, hooks, events and results are about that
//! tool. Only malformed calls arrive here.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use haft_types::{Envelope, Prompt, ToolCall, ToolSpec, prompt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    Access, DeferralUpdate, Gateway, Group, Intent, Manual, Tool, ToolContext, ToolOutput,
    ToolTexts, parameter_schema, parse_arguments,
};

const PROMPT: Prompt = prompt!("use_tool/prompt");

static MANUAL: LazyLock<Manual> = LazyLock::new(|| {
    ToolTexts::parse(PROMPT.english).fill_manual(Manual::for_group(Group::Others))
});

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UseToolParameters {
    /// The tool's name.
    name: String,
    /// Its arguments, as its schema has them.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    #[expect(
        dead_code,
        reason = "only the schema and whether it can be read matter here"
    )]
    arguments: Value,
}

/// The tool that calls deferred tools.
pub struct UseTool {
    spec: ToolSpec,
}

impl Default for UseTool {
    fn default() -> Self {
        let spec = ToolSpec {
            name: ToolCall::INDIRECT_TOOL.into(),
            description: ToolTexts::parse(PROMPT.english).description.into(),
            parameters: parameter_schema::<UseToolParameters>(),
        };
        Self { spec }
    }
}

#[async_trait]
impl Tool for UseTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prompt(&self) -> Option<Prompt> {
        Some(PROMPT)
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn gateway(&self) -> Option<&dyn Gateway> {
        Some(self)
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn intent(&self, _arguments: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, _context: &ToolContext, arguments: Value) -> ToolOutput {
        match parse_arguments::<UseToolParameters>(&self.spec.name, arguments) {
            Ok(UseToolParameters { name, .. }) => {
                let message = format!("`{name}` cannot be called through `{}`", self.spec.name);
                Envelope::failure("invalid_arguments", message).into()
            }
            Err(error) => error.into(),
        }
    }
}

impl Gateway for UseTool {
    fn adapt_to_deferred(&self, deferred: &[Arc<dyn Tool>]) -> DeferralUpdate {
        if deferred.is_empty() {
            DeferralUpdate::Useless
        } else {
            DeferralUpdate::Same
        }
    }
}
