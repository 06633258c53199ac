//! Recognizes files that programs keep for themselves. A command that wrote only such files changed
//! nothing that a task asks for.

use std::path::Path;

/// The names of folders that contain caches.
const CACHE_FOLDERS: [&str; 10] = [
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".cache",
    ".gradle",
    ".tox",
    ".parcel-cache",
    ".turbo",
];
/// The file that marks a folder as a cache, as cargo and pytest write it.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// True if `path`, absolute or relative to `root`, lies in a cache below `root`.
pub(crate) fn is_in_cache(root: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(root).unwrap_or(path);
    let mut folder = root.to_owned();
    below.components().any(|part| {
        folder.push(part);
        let named = CACHE_FOLDERS.iter().any(|name| part.as_os_str() == *name);
        named || folder.join(CACHE_TAG).is_file()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_known_by_name_or_tag() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("target/debug")).unwrap();
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(root.join("target").join(CACHE_TAG), "").unwrap();
        for path in [
            "__pycache__/a.pyc",
            "src/__pycache__/a.pyc",
            ".pytest_cache/v/x",
            "target/debug/out",
            "target/CACHEDIR.TAG",
        ] {
            assert!(is_in_cache(root, Path::new(path)), "{path}");
            assert!(is_in_cache(root, &root.join(path)), "{path}");
        }
        for path in ["src/cache.py", "a.txt", "cache/a.txt", "CACHEDIR.TAG"] {
            assert!(!is_in_cache(root, Path::new(path)), "{path}");
        }
    }
}
