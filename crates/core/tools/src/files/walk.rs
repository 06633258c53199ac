//! How tools walk a tree.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::available_parallelism;

use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::scope::FileScope;

/// More threads than this get in each other's way.
const MAX_THREADS: usize = 12;

/// Whether a walk goes into `.git`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GitFolder {
    /// Like into any other folder.
    Entered,
    Skipped,
}

/// A walk that honours the tree's own ignore files, with or without git, and nothing of the user's
/// home: the same tree gives the same answer to everyone. What rules keep from being read is left
/// out and counted.
pub(crate) fn builder(scope: &FileScope, root: &Path, git: GitFolder) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    let readable = scope.readable.clone();
    let left_out = Arc::clone(&scope.left_out);
    builder
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .filter_entry(move |entry| {
            if git == GitFolder::Skipped && entry.file_name() == ".git" {
                return false;
            }
            // The root itself was permitted with the call.
            let kept = entry.depth() == 0
                || readable
                    .as_ref()
                    .is_none_or(|readable| readable(entry.path()));
            if !kept {
                left_out.fetch_add(1, Ordering::Relaxed);
            }
            kept
        });
    builder
}

/// Walks with several threads, in no order. `visitor` is called once for each thread; what it
/// returns sees every entry that thread comes by.
pub(crate) fn in_parallel<'a>(
    builder: &mut WalkBuilder,
    mut visitor: impl FnMut()
        -> Box<dyn FnMut(Result<DirEntry, ignore::Error>) -> WalkState + Send + 'a>,
) {
    let threads = available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_THREADS);
    builder.threads(threads).build_parallel().run(&mut visitor);
}
