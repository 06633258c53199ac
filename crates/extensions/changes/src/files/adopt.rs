//! Merges changes made in a copy of the project into the project.
//!
//! Invariant: either all changes are made or none. Changes that the project received since the copy
//! was made are kept. If both changed the same lines, nothing is merged and the paths are reported.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_files::LockFile;
use haft_tool::{FileChange, FileHistory};
use haft_tools::OpenFolder;
use haft_types::{ChangeKind, ContentHash};

use super::disk::{
    MAX_SAVED_BYTES, PathSnapshot, ReplaceError, inspect_path, replace_path, sync_folder,
};
use super::merge;
use crate::versions::FileVersion;

/// The prefix of the names of temporary files that a merge writes.
const TEMPORARY_PREFIX: &str = ".haft-merge-";

/// The extension of the files that list the folders of a running merge.
pub(crate) const MERGE_NOTE_EXTENSION: &str = "merging";

/// Writes the folders that a merge changes to the file `note`, for [`clean_up_killed_merges`]. The
/// returned lock marks the merge as running.
pub(crate) fn write_merge_note(note: &Path, changes: &[Adoption]) -> io::Result<LockFile> {
    let lock = LockFile::acquire(note)?;
    let mut file = lock.file();
    file.set_len(0)?;
    let folders: BTreeSet<&Path> = changes
        .iter()
        .filter_map(|change| change.path.parent())
        .collect();
    let folders: Vec<_> = folders
        .into_iter()
        .map(|folder| folder.as_os_str().as_bytes())
        .collect();
    file.write_all(&folders.join(&0))?;
    Ok(lock)
}

/// Removes the temporary files left by merges that were killed. `folder` contains the notes that
/// list the folders of each merge. The contents that these merges replaced are among the saved
/// versions.
pub fn clean_up_killed_merges(folder: &Path) {
    for note in fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
    {
        let is_note = note.extension() == Some(OsStr::new(MERGE_NOTE_EXTENSION));
        // A locked note belongs to a running merge.
        let free = is_note
            .then(|| LockFile::try_acquire_existing(&note).ok().flatten())
            .flatten();
        if let (Some(_lock), Ok(folders)) = (free, fs::read(&note)) {
            for folder in folders.split(|byte| *byte == 0) {
                let folder = OpenFolder::open(Path::new(OsStr::from_bytes(folder)));
                // The folder may have been removed since the note was written.
                let _ = folder.and_then(|folder| folder.remove_leftovers(TEMPORARY_PREFIX));
            }
            drop(fs::remove_file(&note));
        }
    }
}

/// A path that was changed in a sub-agent's copy of the project.
pub(crate) struct Adoption {
    /// The path in the project.
    pub(crate) path: PathBuf,
    /// The path in the copy.
    pub(crate) copy: PathBuf,
    /// The content of the path when the copy was made.
    pub(crate) base: MergeContent,
}

/// The content of a path, reduced to the properties that a merge compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MergeContent {
    Absent,
    File { bytes: Vec<u8>, executable: bool },
    Link { target: Vec<u8> },
}

/// The reason why no changes of the copy were merged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdoptError {
    /// The paths that were changed both in the copy and in the project.
    #[error("the project was changed at the same places")]
    Conflicts(Vec<PathBuf>),
    /// A path could not be read, saved, or written.
    #[error("{0}")]
    Failed(String),
}

/// A change of one path that the merge will make.
struct PlannedAdoption<'a> {
    path: &'a Path,
    before: PathSnapshot,
    after: FileVersion,
    bytes: Vec<u8>,
}

/// Merges `changes` into the project at `root` and records them as changes of `call`.
pub(crate) fn adopt_changes(
    root: &Path,
    history: &dyn FileHistory,
    call: &str,
    changes: &[Adoption],
) -> Result<Vec<FileChange>, AdoptError> {
    let mut planned = Vec::new();
    let mut conflicts = Vec::new();
    for change in changes {
        match plan_adoption(root, change) {
            Ok(Some(one)) => planned.push(one),
            Ok(None) => {}
            Err(merge::Overlap) => conflicts.push(change.path.clone()),
        }
    }
    if !conflicts.is_empty() {
        return Err(AdoptError::Conflicts(conflicts));
    }
    // Removals go first, to make room for additions.
    planned.sort_by_key(|one| one.after != FileVersion::Absent);
    let paths: Vec<&Path> = planned.iter().map(|one| one.path).collect();
    let failed = |error: haft_tool::PortError| AdoptError::Failed(error.to_string());
    history.save_files(call, &paths).map_err(failed)?;
    let made = write_planned(&planned);
    // Recorded even after a failure, because some files may have been changed.
    let noted = history.record_changed(call, &paths).map_err(failed);
    made?;
    noted?;
    Ok(planned.iter().map(to_file_change).collect())
}

/// Returns the change that the merge will make to a path, or `None` if the project already contains
/// the change.
fn plan_adoption<'a>(
    root: &Path,
    change: &'a Adoption,
) -> Result<Option<PlannedAdoption<'a>>, merge::Overlap> {
    if has_non_folder_parent(root, &change.path) {
        return Err(merge::Overlap);
    }
    let before = inspect_path(&change.path, MAX_SAVED_BYTES);
    let copy = inspect_path(&change.copy, MAX_SAVED_BYTES);
    let ours = to_merge_content(&before)?;
    let theirs = to_merge_content(&copy)?;
    if theirs == change.base || theirs == ours {
        return Ok(None);
    }
    let merged = if ours == change.base {
        theirs
    } else {
        merge_contents(&change.base, ours, theirs)?
    };
    let old_mode = match (before.version, copy.version) {
        (FileVersion::File { mode, .. }, _) | (_, FileVersion::File { mode, .. }) => mode,
        _ => 0o644,
    };
    let (after, bytes) = to_version_and_bytes(merged, old_mode);
    Ok(Some(PlannedAdoption {
        path: &change.path,
        before,
        after,
        bytes,
    }))
}

/// True if a parent of `path` below `root` is a link or a file instead of a folder.
fn has_non_folder_parent(root: &Path, path: &Path) -> bool {
    let folders = path
        .ancestors()
        .skip(1)
        .take_while(|folder| folder.starts_with(root) && *folder != root);
    folders.into_iter().any(|folder| {
        folder
            .symlink_metadata()
            .is_ok_and(|metadata| !metadata.is_dir())
    })
}

fn to_merge_content(seen: &PathSnapshot) -> Result<MergeContent, merge::Overlap> {
    match seen.version {
        FileVersion::Absent => Ok(MergeContent::Absent),
        FileVersion::File { mode, .. } => Ok(MergeContent::File {
            bytes: seen.bytes.clone(),
            executable: mode & 0o100 != 0,
        }),
        FileVersion::Link { .. } => Ok(MergeContent::Link {
            target: seen.bytes.clone(),
        }),
        FileVersion::Folder { .. } | FileVersion::Unsaved { .. } => Err(merge::Overlap),
    }
}

fn merge_contents(
    base: &MergeContent,
    ours: MergeContent,
    theirs: MergeContent,
) -> Result<MergeContent, merge::Overlap> {
    match (base, ours, theirs) {
        (
            MergeContent::File {
                bytes: base,
                executable: was,
            },
            MergeContent::File {
                bytes: ours,
                executable: is,
            },
            MergeContent::File {
                bytes: theirs,
                executable: becomes,
            },
        ) => Ok(MergeContent::File {
            bytes: merge::merge_lines(base, &ours, &theirs)?,
            executable: merge::merge_value(was, is, becomes)?,
        }),
        _ => Err(merge::Overlap),
    }
}

fn to_version_and_bytes(held: MergeContent, mode: u32) -> (FileVersion, Vec<u8>) {
    match held {
        MergeContent::Absent => (FileVersion::Absent, Vec::new()),
        MergeContent::File { bytes, executable } => {
            // Everyone who may read the file may run it.
            let mode = if executable {
                mode | (mode & 0o444) >> 2
            } else {
                mode & !0o111
            };
            (
                FileVersion::File {
                    mode,
                    size: bytes.len() as u64,
                    hash: ContentHash::from_content(&bytes),
                },
                bytes,
            )
        }
        MergeContent::Link { target } => (
            FileVersion::Link {
                hash: ContentHash::from_content(&target),
            },
            target,
        ),
    }
}

/// Writes the planned versions. If that fails, the paths already written are restored.
fn write_planned(planned: &[PlannedAdoption<'_>]) -> Result<(), AdoptError> {
    let mut folders = Vec::new();
    for (index, one) in planned.iter().enumerate() {
        let made = create_parents(one, &mut folders).and_then(|()| {
            replace_path(
                one.path,
                (one.before.version, one.after),
                &one.bytes,
                TEMPORARY_PREFIX,
            )
        });
        let Err(error) = made else { continue };
        for done in planned[..index].iter().rev() {
            // A path that another process changed in the meantime is left as it is.
            let _ = replace_path(
                done.path,
                (done.after, done.before.version),
                &done.before.bytes,
                TEMPORARY_PREFIX,
            );
        }
        for folder in folders.iter().rev() {
            if let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) {
                let _ = OpenFolder::open(above).and_then(|above| above.remove_folder(name));
            }
        }
        return Err(match error {
            ReplaceError::ChangedMeanwhile => AdoptError::Conflicts(vec![one.path.to_owned()]),
            ReplaceError::Io(error) => {
                AdoptError::Failed(format!("cannot write `{}`: {error}", one.path.display()))
            }
        });
    }
    let folders: BTreeSet<&Path> = planned.iter().filter_map(|one| one.path.parent()).collect();
    folders.into_iter().for_each(sync_folder);
    Ok(())
}

fn create_parents(one: &PlannedAdoption<'_>, made: &mut Vec<PathBuf>) -> Result<(), ReplaceError> {
    if one.after == FileVersion::Absent {
        return Ok(());
    }
    let Some(folder) = one.path.parent() else {
        return Ok(());
    };
    let missing = OpenFolder::missing_folders(folder);
    OpenFolder::open_or_create(folder)?;
    made.extend(missing);
    Ok(())
}

fn to_file_change(one: &PlannedAdoption<'_>) -> FileChange {
    let kind = match (one.before.version, one.after) {
        (FileVersion::Absent, _) => ChangeKind::Added,
        (_, FileVersion::Absent) => ChangeKind::Deleted,
        _ => ChangeKind::Modified,
    };
    FileChange {
        path: one.path.to_owned(),
        kind,
    }
}
