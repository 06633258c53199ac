//! `ac_mod_write`: writes the module document of a folder.

use haft_tool::FileUse;

use crate::files::write_to_file::write_whole;
use crate::knowledge::modules;
use crate::on_files::OnFiles;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "ac_mod_write";

static MANUAL: Manual = Manual {
    set: Set::Extension,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AcModWriteParameters {
    /// The folder of the module, which must exist.
    path: String,
    /// The complete document, in Markdown.
    content: String,
}

pub(crate) fn tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("ac_mod_write/prompt"),
        &MANUAL,
        Access::Write,
        intent,
    )
    .on_files(write)
}

/// Declares writing the module's document.
fn intent(arguments: &Value) -> Intent {
    modules::intent(arguments, FileUse::Write)
}

fn write(scope: &FileScope, parameters: &AcModWriteParameters) -> CallResult {
    if parameters.content.trim().is_empty() {
        return Err(ToolFailure::new(
            "invalid_arguments",
            "`content` is empty; say what the module is".to_owned(),
        ));
    }
    modules::folder(&scope.workspace, &parameters.path)?;
    write_whole(
        scope,
        &modules::named(&parameters.path),
        &parameters.content,
    )
}

#[cfg(test)]
mod tests;
