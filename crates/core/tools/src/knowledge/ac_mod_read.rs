//! `ac_mod_read`: reads the module document of a folder.

use haft_tool::FileUse;

use crate::files::read_file::read_whole;
use crate::knowledge::modules;
use crate::on_files::OnFiles;
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "ac_mod_read";

static MANUAL: Manual = Manual {
    set: Set::Extension,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AcModReadParameters {
    /// The folder of the module, or its `.ac.mod.md`.
    path: String,
}

pub(crate) fn tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("ac_mod_read/prompt"),
        &MANUAL,
        Access::Read,
        intent,
    )
    .on_files(read)
}

/// Declares reading the module's document.
fn intent(arguments: &Value) -> Intent {
    modules::intent(arguments, FileUse::Read)
}

fn read(scope: &FileScope, parameters: &AcModReadParameters) -> CallResult {
    let folder = modules::folder(&scope.workspace, &parameters.path)?;
    let document = folder.join(modules::DOCUMENT);
    if document.is_file() {
        return read_whole(scope, &modules::named(&parameters.path));
    }
    let name = paths::shown(&scope.workspace, &folder);
    let nearest = match modules::around(&scope.workspace, &document.with_file_name("any")) {
        Some(above) => {
            let above = above.parent().unwrap_or(&above);
            format!(
                "the nearest module above it is `{}`",
                paths::shown(&scope.workspace, above)
            )
        }
        None => "there is none above it either".to_owned(),
    };
    let hint = scope
        .tools
        .hint("ac_mod_list", ", and `ac_mod_list` shows all");
    Err(ToolFailure::new(
        "not_found",
        format!("`{name}` has no module document; {nearest}{hint}"),
    ))
}

#[cfg(test)]
mod tests;
