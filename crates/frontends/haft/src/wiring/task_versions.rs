//! File versions of a task: kept on this machine for undo, and with the queue, so that another worker can rebuild the workspace.
//!
//! Invariant: what a call changed is with the queue before its result is stored. A worker that goes on after a result finds its files.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use haft_changes::versions::{
    FileContent, FileStep, FileVersion, FileVersions, KnownFile, Reversal, StepId, StepKind, TreeUpdate, VersionsError,
    VersionsGuard,
};
use haft_postgres::{KeptFile, KeptKind, TaskQueue};
use haft_tool::CallName;
use haft_tools::OpenFolder;
use haft_types::{ContentHash, ConversationId};
use haft_worker::Slot;

/// Larger files are not kept for other workers, as they are not for undo.
const LARGEST: u64 = 64 << 20;

/// The versions of one run of a task.
pub(crate) struct TaskVersions {
    pub(crate) here: Arc<dyn FileVersions>,
    pub(crate) queue: Arc<TaskQueue>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) folder: PathBuf,
    /// The paths of undos and redos that are being done.
    pub(crate) reversed: Mutex<HashMap<StepId, Vec<PathBuf>>>,
}

impl TaskVersions {
    /// Keeps what these paths hold now with the queue. Goes on only once that is done.
    fn share<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> Result<(), VersionsError> {
        let inside = |path: &'a Path| path.strip_prefix(&self.folder).ok().map(|within| (path, within));
        let files: Vec<_> = paths.into_iter().filter_map(inside).filter_map(|(at, within)| kept(at, within)).collect();
        if files.is_empty() {
            return Ok(());
        }
        let keep = || self.slot.insist(|| self.queue.keep(self.slot.lease, &files));
        // A caller within a runtime must not wait for another one.
        match std::thread::scope(|scope| scope.spawn(keep).join()) {
            Ok(done) => Ok(done?),
            Err(_) => Err(VersionsError::Store(haft_store::StoreError::Closed)),
        }
    }
}

/// What a path holds; none where it cannot be kept. No link on the way to it is followed, also not one that was put there just now.
fn kept(at: &Path, within: &Path) -> Option<KeptFile> {
    match read(at, within) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some(KeptFile { path: within.to_owned(), kind: KeptKind::Absent, mode: 0, content: Vec::new() })
        }
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
        folder.read(name)?.take(LARGEST + 1).read_to_end(&mut content)?;
        if content.len() as u64 > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        (KeptKind::File, content)
    } else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    Ok(KeptFile { path: within.to_owned(), kind, mode: metadata.permissions().mode() & 0o777, content })
}

impl FileVersions for TaskVersions {
    fn exists(&self) -> bool {
        self.here.exists()
    }

    fn content(&self, hash: ContentHash) -> Result<Vec<u8>, VersionsError> {
        self.here.content(hash)
    }

    fn save(
        &self,
        conversation: &ConversationId,
        call: &CallName,
        before: &[(PathBuf, FileVersion)],
        contents: &[FileContent],
    ) -> Result<(), VersionsError> {
        self.here.save(conversation, call, before, contents)
    }

    fn changed(
        &self,
        conversation: &ConversationId,
        call: &CallName,
        after: &[(PathBuf, FileVersion)],
        contents: &[FileContent],
    ) -> Result<(), VersionsError> {
        self.here.changed(conversation, call, after, contents)?;
        self.share(after.iter().map(|(path, _)| path.as_path()))
    }

    fn record(
        &self,
        conversation: &ConversationId,
        call: &CallName,
        since: StepId,
        changes: &[(PathBuf, FileVersion, FileVersion)],
    ) -> Result<Vec<PathBuf>, VersionsError> {
        let noted = self.here.record(conversation, call, since, changes)?;
        self.share(changes.iter().map(|(path, ..)| path.as_path()))?;
        Ok(noted)
    }

    fn steps(&self, conversation: &ConversationId) -> Result<Vec<FileStep>, VersionsError> {
        self.here.steps(conversation)
    }

    fn newest(&self) -> Result<StepId, VersionsError> {
        self.here.newest()
    }

    fn begin(
        &self,
        conversation: &ConversationId,
        kind: StepKind,
        call: Option<&CallName>,
        reversals: &[Reversal],
        contents: &[FileContent],
    ) -> Result<StepId, VersionsError> {
        let step = self.here.begin(conversation, kind, call, reversals, contents)?;
        let paths = reversals.iter().map(|one| one.path.clone()).collect();
        self.reversed.lock().unwrap_or_else(PoisonError::into_inner).insert(step, paths);
        Ok(step)
    }

    fn finish(&self, step: StepId, left: &[&Path]) -> Result<(), VersionsError> {
        self.here.finish(step, left)?;
        let paths = self.reversed.lock().unwrap_or_else(PoisonError::into_inner).remove(&step).unwrap_or_default();
        self.share(paths.iter().map(PathBuf::as_path))
    }

    fn tree(&self, root: &Path) -> Result<Vec<(PathBuf, KnownFile)>, VersionsError> {
        self.here.tree(root)
    }

    fn update_tree(&self, root: &Path, update: &TreeUpdate) -> Result<(), VersionsError> {
        self.here.update_tree(root, update)
    }

    fn trim(&self) -> Result<(), VersionsError> {
        self.here.trim()
    }

    fn hold(&self, conversation: &ConversationId, roots: &[&Path]) -> Result<VersionsGuard, VersionsError> {
        self.here.hold(conversation, roots)
    }

    fn undoing(&self) -> Result<VersionsGuard, VersionsError> {
        self.here.undoing()
    }

    fn file_time(&self) -> Result<i64, VersionsError> {
        self.here.file_time()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_lies_outside_is_not_kept() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let top = folder.path().canonicalize().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        fs::create_dir(top.join("sub")).unwrap();
        fs::write(top.join("sub/plain"), "y").unwrap();
        symlink(outside.path(), top.join("way")).unwrap();
        symlink(outside.path().join("secret"), top.join("link")).unwrap();
        let kept = |name: &str| kept(&top.join(name), Path::new(name));
        assert_eq!(kept("way/secret"), None, "a link on the way");
        assert_eq!(kept("link").unwrap().kind, KeptKind::Link, "itself, not what it leads to");
        assert_eq!(kept("sub/plain").unwrap().content, b"y");
        assert_eq!(kept("sub").unwrap().kind, KeptKind::Folder);
        assert_eq!(kept("gone").unwrap().kind, KeptKind::Absent);
        assert_eq!(kept("gone/deep").unwrap().kind, KeptKind::Absent);
    }
}
