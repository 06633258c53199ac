//! `use_skill`: returns the instructions for a kind of task.
//!
//! Registered only if skills exist.

use std::future::ready;
use std::sync::Arc;

use haft_text::cut_lines;
use haft_tool::{OpenedSkill, SkillSource};

use crate::prelude::*;

const NAME: &str = "use_skill";

static MANUAL: Manual = Manual::for_group(Group::Knowledge);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UseSkillParameters {
    /// The skill, by the name it is listed under.
    name: String,
}

/// Defines the tool `use_skill`, which opens skills of `shelf`.
pub fn define_tool(shelf: Arc<dyn SkillSource>) -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("use_skill/prompt"),
        &MANUAL,
        Access::Read,
        |_| Intent::Nothing,
    )
    .with_function(move |context, parameters| {
        Box::pin(ready(open_skill(shelf.as_ref(), context, parameters)))
    })
}

fn open_skill(
    shelf: &dyn SkillSource,
    context: &ToolContext,
    UseSkillParameters { name }: UseSkillParameters,
) -> CallResult {
    let Some(OpenedSkill {
        text,
        folder,
        files,
    }) = shelf.open_skill(name.trim())
    else {
        let message = format!(
            "there is no skill `{name}`; there are {}",
            shelf.skill_names().join(", ")
        );
        return Err(ToolFailure::new("unknown_skill", message));
    };
    let folder = context.workspace.display_path(&folder);
    let mut shown = text;
    if !files.is_empty() {
        let lines: Vec<_> = files
            .iter()
            .map(|file| format!("- {folder}/{file}"))
            .collect();
        shown = format!("{shown}\n\nFiles of this skill:\n{}", lines.join("\n"));
    }
    let cut = cut_lines(&shown, context.limits.into());
    Ok(Envelope::success(cut.text)
        .with_data(json!({ "name": name, "folder": folder, "files": files }))
        .into())
}
