//! How tools walk a tree.

use std::path::Path;
use std::thread::available_parallelism;

use ignore::{DirEntry, WalkBuilder, WalkState};

/// More threads than this get in each other's way.
const MAX_THREADS: usize = 12;

/// A walk that honours the tree's own ignore files, with or without git, and nothing of the user's home: the same tree
/// gives the same answer to everyone.
pub(crate) fn builder(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder.require_git(false).git_global(false).follow_links(false);
    builder
}

/// Walks with several threads, in no order. `visitor` is called once for each thread; what it returns sees every entry that
/// thread comes by.
pub(crate) fn in_parallel<'a>(
    builder: &mut WalkBuilder,
    mut visitor: impl FnMut() -> Box<dyn FnMut(Result<DirEntry, ignore::Error>) -> WalkState + Send + 'a>,
) {
    let threads = available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    builder.threads(threads).build_parallel().run(&mut visitor);
}
