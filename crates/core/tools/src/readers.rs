//! What extensions read of files.

use std::sync::Arc;

use haft_tool::{DocumentReader, Tool};

/// What can be read of files beside plain text, each by an extension. A tool that is nothing without one of them is offered only
/// where it is there.
#[derive(Clone, Default)]
pub struct Readers {
    /// Takes the text out of documents, for `read_file`, `count_tokens` and `extract_to_text`.
    pub documents: Option<Arc<dyn DocumentReader>>,
    /// Lists definitions: the tool `list_code_definition_names`.
    pub outline: Option<Arc<dyn Tool>>,
}
