//! The readers and tools of this build for files other than plain text.

use std::sync::Arc;

use haft_agent::{Contribution, Extension, ExtensionContext};
use haft_sandbox::Supervisor;
use haft_tools::Readers;

/// The extension with the readers of documents and of source files.
pub(super) struct ReaderExtension;

impl Extension for ReaderExtension {
    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        Contribution {
            readers: build_readers(context.supervisor),
            ..Contribution::default()
        }
    }
}

/// Returns the document readers and the additional file tools of this build.
pub(crate) fn build_readers(supervisor: &Arc<Supervisor>) -> Readers {
    // Only the readers of documents use the supervisor: PDF files are read in a separate process.
    #[cfg(not(feature = "documents"))]
    let _ = supervisor;
    Readers {
        buffers: None,
        #[cfg(feature = "documents")]
        documents: Some(Arc::new(haft_documents::FormatReaders::new(Arc::clone(
            supervisor,
        )))),
        #[cfg(not(feature = "documents"))]
        documents: None,
        tools: vec![
            Arc::new(haft_changes::apply_patch()),
            Arc::new(haft_changes::undo_edit()),
            #[cfg(feature = "outline")]
            Arc::new(haft_outline::define_tool()),
        ],
    }
}
