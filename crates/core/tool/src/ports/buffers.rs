//! What the user has open in an editor and has not saved.

use std::path::Path;

/// The open files of an editor.
pub trait EditorBuffers: Send + Sync {
    /// The text of a file as the editor has it; none where that is no other than on disk, as far as the editor says. It may block.
    fn unsaved(&self, path: &Path) -> Option<String>;
}
