//! Walks folder trees for the tools.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::available_parallelism;

use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::scope::FileScope;

/// The maximum number of threads of a folder walk. More threads would slow each other down.
const MAX_THREADS: usize = 12;

/// Controls whether a folder walk enters `.git`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GitFolder {
    Entered,
    Skipped,
}

/// Returns a folder walk that respects the ignore files of the tree, with or without git. Ignore
/// files in the user's home folder have no effect, so that a tree gives equal results for all
/// users. Files that permission rules hide are omitted and counted.
pub(crate) fn build_walk(scope: &FileScope, root: &Path, git: GitFolder) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    let readable = scope.read_filter.clone();
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

/// Walks a folder tree with several threads, in any order. `visitor` is called once for each
/// thread. The closure that it returns receives every entry that the thread visits.
pub(crate) fn walk_in_parallel<'a>(
    builder: &mut WalkBuilder,
    mut visitor: impl FnMut()
        -> Box<dyn FnMut(Result<DirEntry, ignore::Error>) -> WalkState + Send + 'a>,
) {
    let threads = available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_THREADS);
    builder.threads(threads).build_parallel().run(&mut visitor);
}
