//! `use_skill`: the instructions for a kind of task, read when one comes up (SPEC 13.6).
//!
//! Registered only where there are skills.

use std::sync::Arc;

use async_trait::async_trait;
use haft_text::{Limits, cut_lines};
use haft_tool::{Access, Intent, OpenedSkill, SkillShelf, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Coded, Failure, settle};
use crate::manual::{Group, Manual};
use crate::spec_of;

const NAME: &str = "use_skill";

static MANUAL: Manual = Manual {
    example_of: "Reading how a release is made before making one",
    example: r#"{"name": "release"}"#,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The name of the skill.
    name: String,
}

/// The tool.
pub struct UseSkill {
    spec: ToolSpec,
    shelf: Arc<dyn SkillShelf>,
}

impl UseSkill {
    /// The tool over these skills.
    pub fn new(shelf: Arc<dyn SkillShelf>) -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("use_skill/prompt.md")), shelf }
    }
}

#[async_trait]
impl Tool for UseSkill {
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
        settle(run(self.shelf.as_ref(), context, arguments))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("there is no skill `{name}`; there are {}", .names.join(", "))]
struct Unknown {
    name: String,
    names: Vec<String>,
}

impl Coded for Unknown {
    fn code(&self) -> &'static str {
        "unknown_skill"
    }
}

fn run(shelf: &dyn SkillShelf, context: &ToolContext, arguments: Value) -> Result<ToolOutput, Failure> {
    let Parameters { name } = parse_arguments(NAME, arguments)?;
    let Some(OpenedSkill { text, folder, files }) = shelf.open(name.trim()) else {
        return Err(Unknown { name, names: shelf.names() }.into());
    };
    let folder = context.workspace.display(&folder);
    let mut shown = text;
    if !files.is_empty() {
        let lines: Vec<_> = files.iter().map(|file| format!("- {folder}/{file}")).collect();
        shown = format!("{shown}\n\nFiles of this skill:\n{}", lines.join("\n"));
    }
    let cut = cut_lines(&shown, Limits { lines: context.limits.lines, bytes: context.limits.bytes });
    Ok(Envelope::success(cut.text).with_data(json!({ "name": name, "folder": folder, "files": files })).into())
}
