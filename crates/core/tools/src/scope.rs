//! What a file tool needs of its context, in a form that can move to a blocking thread.

use std::fmt::Write as _;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_tool::{FileState, FunctionTool, ToolContext, ToolDefinition, ToolOutput};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::failure::ToolFailure;
use crate::files::change::seen;
use crate::prelude::CallResult;

/// The context of a call on files.
pub(crate) struct FileScope {
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
    /// What the model reads of what was left out.
    fn told_of_rules(&self, mut output: ToolOutput) -> ToolOutput {
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

    /// Notes how a file looks now, here and in the result: the ledger is rebuilt from results when a conversation is
    /// resumed.
    pub(crate) fn saw(&self, path: &Path, state: FileState) -> Value {
        self.reads.saw(path, state);
        json!({ "file": seen(path, state) })
    }
}

/// Makes a tool of a function over files, which runs on a thread that may block.
pub(crate) trait OnFiles {
    /// The tool whose calls this function carries out.
    fn on_files<P>(self, work: impl Fn(&FileScope, &P) -> CallResult + Send + Sync + 'static) -> FunctionTool<P>
    where
        P: DeserializeOwned + JsonSchema + Send + 'static;
}

impl OnFiles for ToolDefinition {
    fn on_files<P>(self, work: impl Fn(&FileScope, &P) -> CallResult + Send + Sync + 'static) -> FunctionTool<P>
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
    {
        let work = Arc::new(work);
        self.runs(move |context, parameters| {
            let work = Arc::clone(&work);
            Box::pin(blocking(context, move |scope| work(scope, &parameters)))
        })
    }
}

/// Adds what a tool on files would change to it.
pub(crate) trait PreviewsFiles<P> {
    /// The same with a function that tells, as unified diffs, what a call would change. Nobody is asked where it fails: the
    /// call would, too.
    fn previews_files(
        self,
        work: impl Fn(&FileScope, &P) -> Result<String, ToolFailure> + Send + Sync + 'static,
    ) -> Self;
}

impl<P: Send + 'static> PreviewsFiles<P> for FunctionTool<P> {
    fn previews_files(
        self,
        work: impl Fn(&FileScope, &P) -> Result<String, ToolFailure> + Send + Sync + 'static,
    ) -> Self {
        let work = Arc::new(work);
        self.previews(move |context, parameters| {
            let work = Arc::clone(&work);
            Box::pin(async move {
                let foreseen = off_thread(context, move |scope| work(scope, &parameters)).await;
                let shown = |diffs: String| Some(diffs).filter(|diffs| !diffs.is_empty());
                foreseen.map(shown).map_err(|failure| ToolOutput::from(failure).envelope)
            })
        })
    }
}

/// A whole call on a thread that may block.
pub(crate) async fn blocking(
    context: &ToolContext,
    work: impl FnOnce(&FileScope) -> CallResult + Send + 'static,
) -> CallResult {
    off_thread(context, move |scope| work(scope).map(|output| scope.told_of_rules(output))).await
}

/// File work on a thread that may block.
pub(crate) async fn off_thread<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&FileScope) -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    let scope = FileScope { context: context.clone(), left_out: Arc::default() };
    let result = tokio::task::spawn_blocking(move || work(&scope)).await;
    result.unwrap_or_else(|error| {
        Err(ToolFailure::new(
            "internal",
            format!("the tool stopped before it was done: {error}; this is a bug in haft"),
        ))
    })
}
