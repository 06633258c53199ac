//! Builds tools from functions that work on files and run on a thread that may block, and gives
//! extensions access to files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::{FunctionTool, ToolContext, ToolDefinition, ToolOutput};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::failure::ToolFailure;
use crate::files::encoding::decode_text;
use crate::files::walk::{self, GitFolder};
use crate::files::{disk, nearest_path};
use crate::paths;
use crate::prelude::CallResult;
use crate::scope::FileScope;

impl FileScope {
    /// Resolves a path that the model wrote to a file or folder in the workspace. Returns the
    /// resolved path and the name to show.
    pub fn resolve_path(&self, given: &str) -> Result<(PathBuf, String), ToolFailure> {
        let path = paths::resolve_path(&self.workspace, given)?;
        let name = self.display_path(&path);
        Ok((path, name))
    }

    /// Returns the files of a folder that may be read and are not ignored, sorted by name. Each
    /// path is returned with the name to show.
    pub fn list_files(&self, folder: &Path) -> Result<Vec<(PathBuf, String)>, ToolFailure> {
        let mut builder = walk::build_walk(self, folder, GitFolder::Entered);
        let mut files = Vec::new();
        for found in builder
            .max_depth(Some(1))
            .sort_by_file_name(Ord::cmp)
            .build()
        {
            let entry = found.map_err(|error| {
                let name = self.display_path(folder);
                ToolFailure::new("io", format!("cannot list `{name}`: {error}"))
            })?;
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                let name = self.display_path(entry.path());
                files.push((entry.into_path(), name));
            }
        }
        Ok(files)
    }

    /// Reads the text of a resolved file, or returns `None` if it is not text.
    pub fn read_text(&self, path: &Path, name: &str) -> Result<Option<String>, ToolFailure> {
        Ok(decode_text(&disk::load_file(path, name)?.bytes).map(|decoded| decoded.text))
    }

    /// Returns the name under which a path is shown to the model and the user.
    pub fn display_path(&self, path: &Path) -> String {
        paths::display_path(&self.workspace, path)
    }
}

/// Builds a tool from a function that works on files and runs on a thread that may block.
pub trait OnFiles {
    /// Returns the tool that runs `work` for each call.
    fn on_files<P>(
        self,
        work: impl Fn(&FileScope, &P) -> CallResult + Send + Sync + 'static,
    ) -> FunctionTool<P>
    where
        P: DeserializeOwned + JsonSchema + Send + 'static;
}

impl OnFiles for ToolDefinition {
    fn on_files<P>(
        self,
        work: impl Fn(&FileScope, &P) -> CallResult + Send + Sync + 'static,
    ) -> FunctionTool<P>
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
    {
        let work = Arc::new(work);
        self.with_function(move |context, parameters| {
            let work = Arc::clone(&work);
            Box::pin(run_blocking(context, move |scope| work(scope, &parameters)))
        })
    }
}

/// Extends a tool that changes files with a preview of the changes.
pub(crate) trait PreviewsFiles<P> {
    /// Adds the function `work`, which returns the changes of a call as unified diffs. If `work`
    /// fails, the user is not asked for approval, because the call would fail too.
    fn with_file_preview(
        self,
        work: impl Fn(&FileScope, &P) -> Result<String, ToolFailure> + Send + Sync + 'static,
    ) -> Self;
}

impl<P: Send + 'static> PreviewsFiles<P> for FunctionTool<P> {
    fn with_file_preview(
        self,
        work: impl Fn(&FileScope, &P) -> Result<String, ToolFailure> + Send + Sync + 'static,
    ) -> Self {
        let work = Arc::new(work);
        self.with_preview(move |context, parameters| {
            let work = Arc::clone(&work);
            Box::pin(async move {
                let foreseen = run_off_thread(context, move |scope| work(scope, &parameters)).await;
                let shown = |diffs: String| Some(diffs).filter(|diffs| !diffs.is_empty());
                foreseen
                    .map(shown)
                    .map_err(|failure| ToolOutput::from(failure).envelope)
            })
        })
    }
}

/// Runs a whole tool call on a thread that may block.
pub(crate) async fn run_blocking(
    context: &ToolContext,
    work: impl FnOnce(&FileScope) -> CallResult + Send + 'static,
) -> CallResult {
    run_off_thread(context, move |scope| {
        work(scope).map(|output| scope.note_omissions(output))
    })
    .await
}

/// Runs file operations on a thread that may block.
pub(crate) async fn run_off_thread<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&FileScope) -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    let scope = FileScope::new(context);
    let result = tokio::task::spawn_blocking(move || {
        work(&scope).map_err(|failure| {
            failure.with_hint(|missing| nearest_path::suggest_paths(&scope, missing))
        })
    })
    .await;
    result.unwrap_or_else(|error| {
        Err(ToolFailure::new(
            "internal",
            format!("the tool stopped before it was done: {error}; this is a bug in haft"),
        ))
    })
}
