//! The file readers and tools that extensions provide.

use std::sync::Arc;

use haft_tool::{DocumentReader, EditorBuffers, Tool};

/// Readers of files other than plain text, each provided by an extension. A tool that needs a
/// reader is offered only if the reader exists.
#[derive(Clone, Default)]
pub struct Readers {
    /// Extracts text from documents, for `read_file`, `count_tokens` and `extract_to_text`.
    pub documents: Option<Arc<dyn DocumentReader>>,
    /// Provides the unsaved content of files that are open in an editor, for `read_file`.
    pub buffers: Option<Arc<dyn EditorBuffers>>,
    /// Tools that are listed among the built-in tools, such as `undo_edit`, in order.
    pub tools: Vec<Arc<dyn Tool>>,
}
