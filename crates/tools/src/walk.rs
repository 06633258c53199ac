//! How `list_files` and `search_files` walk a tree.

use std::path::Path;

use ignore::WalkBuilder;

/// A walk that honours the tree's own ignore files, with or without git, and nothing of the user's home: the same tree
/// gives the same answer to everyone.
pub(crate) fn builder(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder.require_git(false).git_global(false).follow_links(false);
    builder
}
