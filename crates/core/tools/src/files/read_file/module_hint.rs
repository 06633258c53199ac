//! Mentions the module document of a file when the file is first read.

use std::path::Path;

use haft_tool::ToolContext;
use haft_types::Envelope;

use super::add_line;
use crate::knowledge::module_documents;
use crate::paths;

/// Adds the path of the document that describes the file's module, unless the model has read the
/// document or it was mentioned before.
pub(super) fn add_module_hint(context: &ToolContext, path: &Path, envelope: &mut Envelope) {
    let Some(document) = module_documents::find_enclosing_document(&context.workspace, path) else {
        return;
    };
    if context.reads.last_seen(&document).is_some() || !context.reads.record_named(&document) {
        return;
    }
    let name = paths::display_path(&context.workspace, &document);
    let module = paths::display_path(&context.workspace, document.parent().unwrap_or(&document));
    add_line(
        &mut envelope.text,
        &format!("[It belongs to the module `{module}`, which `{name}` describes.]"),
    );
    envelope.data["module"] = name.into();
    if envelope.context.is_null() {
        envelope.context = serde_json::json!({});
    }
    envelope.context["named"] = document.display().to_string().into();
}
