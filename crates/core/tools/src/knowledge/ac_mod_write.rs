//! `ac_mod_write`: writes the module document of a folder.

use async_trait::async_trait;
use haft_tool::{Access, FileUse, Intent, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Failure, settle};
use crate::files::write_to_file::write_whole;
use crate::knowledge::modules;
use crate::manual::{Group, Manual, Set};
use crate::scope::{Scope, blocking};
use crate::spec_of;

const NAME: &str = "ac_mod_write";

static MANUAL: Manual = Manual {
    set: Set::Extension,
    example_of: "Describing a module that has no document yet",
    example: r##"{"path": "src/billing", "content": "# billing\n\nTurns orders into invoices.\n"}"##,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The folder of the module.
    path: String,
    /// The complete document.
    content: String,
}

/// The tool.
pub(crate) struct AcModWrite {
    spec: ToolSpec,
}

impl AcModWrite {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("ac_mod_write/prompt.md")) }
    }
}

#[async_trait]
impl Tool for AcModWrite {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Write
    }

    /// It is the document that is written.
    fn intent(&self, arguments: &Value) -> Intent {
        modules::intent(arguments, FileUse::Write)
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        match parse_arguments::<Parameters>(NAME, arguments) {
            Ok(parameters) => blocking(context, move |scope| write(scope, &parameters)).await,
            Err(error) => settle(Err(error.into())),
        }
    }
}

fn write(scope: &Scope, parameters: &Parameters) -> Result<ToolOutput, Failure> {
    if parameters.content.trim().is_empty() {
        return Err(Failure::new("invalid_arguments", "`content` is empty; say what the module is".to_owned()));
    }
    modules::folder(&scope.workspace, &parameters.path)?;
    write_whole(scope, &modules::named(&parameters.path), &parameters.content)
}

#[cfg(test)]
mod tests;
