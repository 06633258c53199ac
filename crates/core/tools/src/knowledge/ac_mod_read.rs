//! `ac_mod_read`: reads the module document of a folder.

use haft_tool::FileUse;

use crate::files::read_file::read_whole_file;
use crate::knowledge::module_documents;
use crate::on_files::OnFiles;
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "ac_mod_read";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AcModReadParameters {
    /// The folder of the module, or its `.ac.mod.md`.
    path: String,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("ac_mod_read/prompt"),
        &MANUAL,
        Access::Read,
        derive_intent,
    )
    .on_files(read_module)
}

/// Returns the intent to read the module's document.
fn derive_intent(arguments: &Value) -> Intent {
    module_documents::derive_intent(arguments, FileUse::Read)
}

fn read_module(scope: &FileScope, parameters: &AcModReadParameters) -> CallResult {
    let folder = module_documents::resolve_module_folder(&scope.workspace, &parameters.path)?;
    let document = folder.join(module_documents::DOCUMENT_NAME);
    if document.is_file() {
        return read_whole_file(scope, &module_documents::document_path(&parameters.path));
    }
    let name = paths::display_path(&scope.workspace, &folder);
    let nearest = match module_documents::find_enclosing_document(
        &scope.workspace,
        &document.with_file_name("any"),
    ) {
        Some(above) => {
            let above = above.parent().unwrap_or(&above);
            format!(
                "the nearest module above it is `{}`",
                paths::display_path(&scope.workspace, above)
            )
        }
        None => "there is none above it either".to_owned(),
    };
    let hint = scope
        .tools
        .hint_if_known("ac_mod_list", ", and `ac_mod_list` shows all");
    Err(ToolFailure::new(
        "not_found",
        format!("`{name}` has no module document; {nearest}{hint}"),
    ))
}

#[cfg(test)]
mod tests;
