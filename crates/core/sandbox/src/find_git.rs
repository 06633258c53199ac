//! Finds a trustworthy git program.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folders in which git is searched for after those passed to `find_git`.
const FALLBACK_FOLDERS: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/bin"];

/// Returns the first git in `places`, a list like `PATH`, or else in `FALLBACK_FOLDERS`. Skips any
/// git that a project or another user could have put there.
pub(crate) fn find_git(places: &str, projects: &[&Path]) -> Option<PathBuf> {
    let projects: Vec<_> = projects
        .iter()
        .filter_map(|project| project.canonicalize().ok())
        .collect();
    let places = std::env::split_paths(places).filter(|place| place.is_absolute());
    places
        .chain(FALLBACK_FOLDERS.map(PathBuf::from))
        .find_map(|place| {
            let program = place.join("git").canonicalize().ok()?;
            let place = place.canonicalize().ok()?;
            let own = |path: &Path| {
                projects.iter().any(|project| path.starts_with(project))
                    || path
                        .components()
                        .any(|part| part.as_os_str() == "node_modules")
            };
            let metadata = program.metadata().ok()?;
            let runs = metadata.is_file() && metadata.mode() & 0o111 != 0;
            let folders = [place.metadata().ok()?, program.parent()?.metadata().ok()?];
            let safe = is_trusted(&metadata) && folders.iter().all(is_trusted);
            (runs && safe && !own(&place) && !own(&program)).then_some(program)
        })
}

/// True if only the owner and the owner's group can write the file, and the owner is this user or
/// root.
fn is_trusted(metadata: &Metadata) -> bool {
    let owner = metadata.uid();
    metadata.mode() & 0o002 == 0 && (owner == 0 || owner == rustix::process::geteuid().as_raw())
}
