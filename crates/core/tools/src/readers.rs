//! What extensions read of files.

use std::sync::Arc;

use haft_tool::{DocumentReader, EditorBuffers, Tool};

/// What can be read of files beside plain text, each by an extension. A tool that is nothing
/// without one of them is offered only where it is there.
#[derive(Clone, Default)]
pub struct Readers {
    /// Takes the text out of documents, for `read_file`, `count_tokens` and `extract_to_text`.
    pub documents: Option<Arc<dyn DocumentReader>>,
    /// What an editor has open, for `read_file`.
    pub buffers: Option<Arc<dyn EditorBuffers>>,
    /// Tools that stand among the built-in ones, such as `undo_edit`, in order.
    pub tools: Vec<Arc<dyn Tool>>,
}
