//! Helps a model whose path does not exist: suggests similar paths, or lists the nearest existing
//! folder. The hint never suggests another tool, because the failed call may be of that tool.

use std::path::Path;

use similar::get_close_matches;

use crate::files::walk::{self, GitFolder};
use crate::paths;
use crate::scope::FileScope;
use crate::visible;

/// The maximum number of files and folders that are visited to find similar paths.
const MAX_VISITED: usize = 20_000;
/// The maximum number of similar paths in a hint.
const MAX_SUGGESTIONS: usize = 3;
/// The maximum number of folder entries in a hint.
const MAX_LISTED_ENTRIES: usize = 20;
/// The minimum similarity, between 0 and 1, of the file names in a suggestion to the missing name.
const MIN_SIMILARITY: f32 = 0.7;

/// Returns a hint with similar paths, which is appended to "does not exist". Omits ignored files
/// and files that a permission rule hides.
pub(crate) fn suggest_paths(scope: &FileScope, missing: &str) -> String {
    let path = scope.workspace.cwd.join(missing);
    let near = find_similar_paths(scope, &path);
    if !near.is_empty() {
        return format!("; near it there is {}", near.join(", "));
    }
    let exists = |folder: &&Path| folder.is_dir() && scope.workspace.contains(folder);
    let Some(folder) = path.ancestors().skip(1).find(exists) else {
        return String::new();
    };
    if !scope
        .read_filter
        .as_ref()
        .is_none_or(|readable| readable(folder))
    {
        return String::new();
    }
    let (entries, more) = list_entries(scope, folder, 1, MAX_LISTED_ENTRIES);
    let shown = paths::display_path(&scope.workspace, folder);
    if entries.is_empty() {
        return format!("; `{shown}` is empty");
    }
    format!(
        "; `{shown}` holds {}{}",
        entries.join(", "),
        if more { ", …" } else { "" }
    )
}

/// Returns the most similar paths: first paths with an equal name, then paths with an equal stem,
/// then paths with a similar name.
fn find_similar_paths(scope: &FileScope, missing: &Path) -> Vec<String> {
    let Some(wanted) = missing
        .file_name()
        .map(|name| name.to_string_lossy().to_lowercase())
    else {
        return Vec::new();
    };
    let (paths, _) = list_entries(scope, &scope.workspace.cwd, usize::MAX, MAX_VISITED);
    let names: Vec<String> = paths
        .iter()
        .map(|path| {
            path.trim_matches(['`', '/'])
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_lowercase()
        })
        .collect();
    let stem = |name: &str| {
        name.rsplit_once('.')
            .map_or(name, |(stem, _)| stem)
            .to_owned()
    };
    let alike = get_close_matches(
        wanted.as_str(),
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
        MAX_SUGGESTIONS,
        MIN_SIMILARITY,
    );
    let mut ranked: Vec<_> = (paths.iter().zip(&names))
        .filter_map(|(path, name)| {
            let rank = if *name == wanted {
                0
            } else if stem(name) == stem(&wanted) {
                1
            } else if alike.contains(&name.as_str()) {
                2
            } else {
                return None;
            };
            Some((rank, path.matches('/').count(), path))
        })
        .collect();
    ranked.sort_unstable();
    ranked
        .into_iter()
        .take(MAX_SUGGESTIONS)
        .map(|(_, _, path)| path.clone())
        .collect()
}

/// Lists the entries of a folder down to `depth`, formatted for a sentence. Returns at most `most`
/// entries, and true if there are more.
fn list_entries(
    scope: &FileScope,
    folder: &Path,
    depth: usize,
    most: usize,
) -> (Vec<String>, bool) {
    let mut builder = walk::build_walk(scope, folder, GitFolder::Skipped);
    let walk = builder
        .max_depth(Some(depth))
        .sort_by_file_name(Ord::cmp)
        .build();
    let mut entries = walk
        .flatten()
        .filter(|entry| entry.depth() > 0)
        .map(|entry| {
            let slash = if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                "/"
            } else {
                ""
            };
            format!(
                "`{}{slash}`",
                visible::reveal_line(&paths::display_path(&scope.workspace, entry.path()))
            )
        });
    let found = entries.by_ref().take(most).collect();
    (found, entries.next().is_some())
}
