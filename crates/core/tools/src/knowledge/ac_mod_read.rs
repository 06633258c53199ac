//! `ac_mod_read`: the module document of a folder.

use std::sync::Arc;

use async_trait::async_trait;
use haft_sandbox::Supervisor;
use haft_tool::{Access, FileUse, Intent, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Failure, settle};
use crate::files::read_file::read_whole;
use crate::knowledge::modules;
use crate::manual::{Group, Manual, Set};
use crate::scope::{Scope, blocking};
use crate::{paths, spec_of};

const NAME: &str = "ac_mod_read";

static MANUAL: Manual = Manual {
    set: Set::Extension,
    example_of: "Reading what a module is before changing it",
    example: r#"{"path": "src/billing"}"#,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The folder of the module.
    path: String,
}

/// The tool.
pub(crate) struct AcModRead {
    spec: ToolSpec,
    supervisor: Arc<Supervisor>,
}

impl AcModRead {
    pub(crate) fn new(supervisor: Arc<Supervisor>) -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("ac_mod_read/prompt.md")), supervisor }
    }
}

#[async_trait]
impl Tool for AcModRead {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Read
    }

    /// It is the document that is read.
    fn intent(&self, arguments: &Value) -> Intent {
        modules::intent(arguments, FileUse::Read)
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        match parse_arguments::<Parameters>(NAME, arguments) {
            Ok(parameters) => {
                let supervisor = Arc::clone(&self.supervisor);
                blocking(context, move |scope| read(scope, &supervisor, &parameters)).await
            }
            Err(error) => settle(Err(error.into())),
        }
    }
}

fn read(scope: &Scope, supervisor: &Supervisor, parameters: &Parameters) -> Result<ToolOutput, Failure> {
    let folder = modules::folder(&scope.workspace, &parameters.path)?;
    let document = folder.join(modules::DOCUMENT);
    if document.is_file() {
        return read_whole(scope, supervisor, &modules::named(&parameters.path));
    }
    let name = paths::shown(&scope.workspace, &folder);
    let nearest = match modules::around(&scope.workspace, &document.with_file_name("any")) {
        Some(above) => {
            let above = above.parent().unwrap_or(&above);
            format!("the nearest module above it is `{}`", paths::shown(&scope.workspace, above))
        }
        None => "there is none above it either".to_owned(),
    };
    Err(Failure::new("not_found", format!("`{name}` has no module document; {nearest}, and `ac_mod_list` shows all")))
}

#[cfg(test)]
mod tests;
