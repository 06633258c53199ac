//! Implements the glob patterns of the tools `glob` and `search_files`.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// A glob pattern. It matches paths below a folder if it contains a slash, else file names.
#[derive(Clone, Debug)]
pub(crate) struct FilePattern {
    glob: GlobMatcher,
    on_path: bool,
}

impl FilePattern {
    pub(crate) fn new(pattern: &str) -> Result<Self, globset::Error> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()?
            .compile_matcher();
        Ok(Self {
            glob,
            on_path: pattern.contains('/'),
        })
    }

    /// True if the pattern matches `path`, which lies in `root`.
    pub(crate) fn matches(&self, root: &Path, path: &Path) -> bool {
        if self.on_path {
            path.strip_prefix(root)
                .is_ok_and(|below| self.glob.is_match(below))
        } else {
            path.file_name()
                .is_some_and(|name| self.glob.is_match(name))
        }
    }
}
