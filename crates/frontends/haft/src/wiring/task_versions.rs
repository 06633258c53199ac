//! File versions of a task: kept on this machine for undo, and with the queue, so that another
//! worker can rebuild the workspace.
//!
//! Invariant: what a call changed is with the queue before its result is stored. A worker that goes
//! on after a result finds its files.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use haft_agent::config::Config;
use haft_agent::{Places, WallClock};
use haft_changes::versions::SqliteVersions;
use haft_postgres::{KeptFile, KeptKind};
use haft_tools::OpenFolder;
use haft_worker::TaskRun;

/// Larger files are not kept for other workers, as they are not for undo.
const LARGEST: u64 = 64 << 20;

/// The versions of one run of a task.
pub(crate) fn task_versions(
    places: &Places,
    config: &Config,
    run: &TaskRun,
) -> Arc<SqliteVersions> {
    let run = run.clone();
    // Goes on only once what the paths hold now is with the queue.
    let share = move |paths: &[&Path]| {
        let inside = paths
            .iter()
            .filter_map(|path| Some((path, path.strip_prefix(&run.folder).ok()?)));
        let files: Vec<_> = inside.filter_map(|(at, within)| kept(at, within)).collect();
        if files.is_empty() {
            Ok(())
        } else {
            run.keep(&files)
        }
    };
    let here = SqliteVersions::at(&places.versions(), &config.store, Arc::new(WallClock));
    Arc::new(here.telling(Arc::new(share)))
}

/// What a path holds; none where it cannot be kept. No link on the way to it is followed, also not
/// one that was put there just now.
fn kept(at: &Path, within: &Path) -> Option<KeptFile> {
    match read(at, within) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(KeptFile {
            path: within.to_owned(),
            kind: KeptKind::Absent,
            mode: 0,
            content: Vec::new(),
        }),
        Err(error) => {
            tracing::warn!(path = %at.display(), %error, "another worker could not rebuild this file");
            None
        }
    }
}

fn read(at: &Path, within: &Path) -> io::Result<KeptFile> {
    let (Some(above), Some(name)) = (at.parent(), at.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let folder = OpenFolder::open(above)?;
    let metadata = folder.look(name)?;
    let (kind, content) = if metadata.is_symlink() {
        (KeptKind::Link, folder.target(name)?)
    } else if metadata.is_dir() {
        (KeptKind::Folder, Vec::new())
    } else if metadata.is_file() {
        let mut content = Vec::new();
        folder
            .read(name)?
            .take(LARGEST + 1)
            .read_to_end(&mut content)?;
        if content.len() as u64 > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        (KeptKind::File, content)
    } else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    Ok(KeptFile {
        path: within.to_owned(),
        kind,
        mode: metadata.permissions().mode() & 0o777,
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_lies_outside_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        fs::create_dir(top.join("sub")).unwrap();
        fs::write(top.join("sub/plain"), "y").unwrap();
        symlink(outside.path(), top.join("way")).unwrap();
        symlink(outside.path().join("secret"), top.join("link")).unwrap();
        let kept = |name: &str| kept(&top.join(name), Path::new(name));
        assert_eq!(kept("way/secret"), None, "a link on the way");
        assert_eq!(
            kept("link").unwrap().kind,
            KeptKind::Link,
            "itself, not what it leads to"
        );
        assert_eq!(kept("sub/plain").unwrap().content, b"y");
        assert_eq!(kept("sub").unwrap().kind, KeptKind::Folder);
        assert_eq!(kept("gone").unwrap().kind, KeptKind::Absent);
        assert_eq!(kept("gone/deep").unwrap().kind, KeptKind::Absent);
    }
}
