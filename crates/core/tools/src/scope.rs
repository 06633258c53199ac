//! The context of a tool call that works on files, in a form that can move to a blocking thread.

use std::fmt::Write as _;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_tool::{FileState, ToolContext, ToolOutput};
use serde_json::{Value, json};

use crate::files::change::file_state_to_json;
use crate::files::disk::{LoadedFile, compute_file_state};

/// The context of a tool call that works on files, with methods to access the files.
pub struct FileScope {
    context: ToolContext,
    /// The number of entries that folder walks omitted because permission rules hide them.
    pub(crate) left_out: Arc<AtomicUsize>,
}

impl Deref for FileScope {
    type Target = ToolContext;

    fn deref(&self) -> &ToolContext {
        &self.context
    }
}

impl FileScope {
    pub(crate) fn new(context: &ToolContext) -> Self {
        Self {
            context: context.clone(),
            left_out: Arc::default(),
        }
    }

    /// Appends the number of omitted entries to the result's text.
    pub(crate) fn note_omissions(&self, mut output: ToolOutput) -> ToolOutput {
        let left_out = self.left_out.load(Ordering::Relaxed);
        if left_out > 0 {
            // Writing to a String cannot fail.
            let _ = write!(
                output.envelope.text,
                "\n[Left out: {left_out} files or folders that a permission rule keeps from being read]"
            );
        }
        output
    }

    /// Replaces the loaded content of a file with the unsaved content in the user's editor, if
    /// there is any.
    pub(crate) fn apply_unsaved(&self, path: &Path, mut loaded: LoadedFile) -> LoadedFile {
        if let Some(unsaved) = self
            .buffers
            .as_ref()
            .and_then(|buffers| buffers.unsaved_text(path))
        {
            loaded.bytes = unsaved.into_bytes();
            loaded.state = compute_file_state(&loaded.bytes, &loaded.metadata);
        }
        loaded
    }

    /// Records the current state of a file in the read ledger, and returns the state in the form in
    /// which the result contains it. The ledger is rebuilt from results when a conversation is
    /// resumed.
    pub fn record_seen(&self, path: &Path, state: FileState) -> Value {
        self.reads.record_seen(path, state);
        json!({ "file": file_state_to_json(path, state) })
    }
}
