//! `ac_mod_write`: writes the module document of a folder.

use haft_tool::FileUse;

use crate::files::write_to_file::write_whole_file;
use crate::knowledge::module_documents;
use crate::on_files::OnFiles;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "ac_mod_write";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AcModWriteParameters {
    /// The folder of the module, which must exist.
    path: String,
    /// The complete document, in Markdown.
    content: String,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("ac_mod_write/prompt"),
        &MANUAL,
        Access::Write,
        derive_intent,
    )
    .on_files(write_module)
}

/// Returns the intent to write the module's document.
fn derive_intent(arguments: &Value) -> Intent {
    module_documents::derive_intent(arguments, FileUse::Write)
}

fn write_module(scope: &FileScope, parameters: &AcModWriteParameters) -> CallResult {
    if parameters.content.trim().is_empty() {
        return Err(ToolFailure::new(
            "invalid_arguments",
            "`content` is empty; say what the module is".to_owned(),
        ));
    }
    module_documents::resolve_module_folder(&scope.workspace, &parameters.path)?;
    write_whole_file(
        scope,
        &module_documents::document_path(&parameters.path),
        &parameters.content,
    )
}

#[cfg(test)]
mod tests;
