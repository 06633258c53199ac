//! What a file tool needs of its context, in a form that can move to a blocking thread.

use std::fmt::Write as _;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_tool::{FileState, ToolContext, ToolOutput};
use serde_json::{Value, json};

use crate::files::change::seen;
use crate::files::disk::{Loaded, state_of};

/// The context of a call on files, with the ways to them.
pub struct FileScope {
    context: ToolContext,
    /// How much was left out on walks because a rule keeps it from being read.
    pub(crate) left_out: Arc<AtomicUsize>,
}

impl Deref for FileScope {
    type Target = ToolContext;

    fn deref(&self) -> &ToolContext {
        &self.context
    }
}

impl FileScope {
    /// That of a call with this context.
    pub(crate) fn new(context: &ToolContext) -> Self {
        Self {
            context: context.clone(),
            left_out: Arc::default(),
        }
    }

    /// What the model reads of what was left out.
    pub(crate) fn told_of_rules(&self, mut output: ToolOutput) -> ToolOutput {
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

    /// A file as its user has it open, where an editor says that it is not saved.
    pub(crate) fn as_open(&self, path: &Path, mut loaded: Loaded) -> Loaded {
        if let Some(unsaved) = self
            .buffers
            .as_ref()
            .and_then(|buffers| buffers.unsaved(path))
        {
            loaded.bytes = unsaved.into_bytes();
            loaded.state = state_of(&loaded.bytes, &loaded.metadata);
        }
        loaded
    }

    /// Notes how a file looks now, here and in the result: the ledger is rebuilt from results when
    /// a conversation is resumed.
    pub fn saw(&self, path: &Path, state: FileState) -> Value {
        self.reads.saw(path, state);
        json!({ "file": seen(path, state) })
    }
}
