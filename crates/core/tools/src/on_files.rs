//! Tools made of functions over files, which run on a thread that may block, and the ways to files
//! that extensions have.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::{FunctionTool, ToolContext, ToolDefinition, ToolOutput};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::failure::ToolFailure;
use crate::files::encoding::decode;
use crate::files::walk::{self, GitFolder};
use crate::files::{disk, nearest_path};
use crate::paths;
use crate::prelude::CallResult;
use crate::scope::FileScope;

impl FileScope {
    /// The file or folder a model means with a path, and the name it is shown by. It lies in the
    /// workspace.
    pub fn resolve(&self, given: &str) -> Result<(PathBuf, String), ToolFailure> {
        let path = paths::resolve(&self.workspace, given)?;
        let name = self.shown(&path);
        Ok((path, name))
    }

    /// The files of a folder that may be read and are not ignored, in order of their names, each
    /// with the name it is shown by.
    pub fn files_of(&self, folder: &Path) -> Result<Vec<(PathBuf, String)>, ToolFailure> {
        let mut builder = walk::builder(self, folder, GitFolder::Entered);
        let mut files = Vec::new();
        for found in builder
            .max_depth(Some(1))
            .sort_by_file_name(Ord::cmp)
            .build()
        {
            let entry = found.map_err(|error| {
                let name = self.shown(folder);
                ToolFailure::new("io", format!("cannot list `{name}`: {error}"))
            })?;
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                let name = self.shown(entry.path());
                files.push((entry.into_path(), name));
            }
        }
        Ok(files)
    }

    /// The text of a resolved file; none if it is no text.
    pub fn text_of(&self, path: &Path, name: &str) -> Result<Option<String>, ToolFailure> {
        Ok(decode(&disk::load(path, name)?.bytes).map(|decoded| decoded.text))
    }

    /// The name a path is shown by.
    pub fn shown(&self, path: &Path) -> String {
        paths::shown(&self.workspace, path)
    }
}

/// Makes a tool of a function over files, which runs on a thread that may block.
pub trait OnFiles {
    /// The tool whose calls this function carries out.
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
        self.runs(move |context, parameters| {
            let work = Arc::clone(&work);
            Box::pin(blocking(context, move |scope| work(scope, &parameters)))
        })
    }
}

/// Adds what a tool on files would change to it.
pub(crate) trait PreviewsFiles<P> {
    /// The same with a function that tells, as unified diffs, what a call would change. Nobody is
    /// asked where it fails: the call would, too.
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
                foreseen
                    .map(shown)
                    .map_err(|failure| ToolOutput::from(failure).envelope)
            })
        })
    }
}

/// A whole call on a thread that may block.
pub(crate) async fn blocking(
    context: &ToolContext,
    work: impl FnOnce(&FileScope) -> CallResult + Send + 'static,
) -> CallResult {
    off_thread(context, move |scope| {
        work(scope).map(|output| scope.told_of_rules(output))
    })
    .await
}

/// File work on a thread that may block.
pub(crate) async fn off_thread<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&FileScope) -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    let scope = FileScope::new(context);
    let result = tokio::task::spawn_blocking(move || {
        work(&scope)
            .map_err(|failure| failure.with_hint(|missing| nearest_path::hint(&scope, missing)))
    })
    .await;
    result.unwrap_or_else(|error| {
        Err(ToolFailure::new(
            "internal",
            format!("the tool stopped before it was done: {error}; this is a bug in haft"),
        ))
    })
}
