//! Plans the effect of an undo or redo on each path from the record and the current content of the
//! paths. Planning changes nothing.
//!
//! Invariant: a path is planned to change only if haft itself made every change to it since the
//! first change to be reversed. Paths that others changed are left as they are and reported. Each
//! path is reversed completely or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use haft_types::ContentHash;

use super::{disk, merge};
use crate::versions::{
    FileContent, FileStep, FileVersion, PathChange, Reversal, SqliteVersions, StepId,
};

/// The reason why the changes of a path are not reversed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// Another program or the user changed the path after haft wrote it.
    #[error("someone else changed it since")]
    ChangedByOthers,
    /// haft later changed the affected lines or properties again, and that later change is still in
    /// effect.
    #[error("`{tool}` (call {call_id}) changed the same place later; take that back first")]
    ChangedLater {
        /// The name of the tool that made the later change.
        tool: String,
        /// The id of the call that made the later change.
        call_id: String,
    },
    /// The earlier version was never saved.
    #[error("what it held before was not saved: it was too large, unreadable or ignored")]
    Unsaved,
    /// haft was killed while it changed the path, so the cause of the current content is unknown.
    #[error("haft was stopped in the middle of this change, so nobody knows who changed it last")]
    Uncertain,
    /// The earlier version was removed to keep the store within its size limit.
    #[error("what it held before is no longer stored")]
    Gone,
    /// The parent folder no longer exists or has been replaced by a link.
    #[error("its folder is gone or is a link now")]
    FolderGone,
    /// The path is occupied by a folder that is not empty.
    #[error("a folder that is not empty is in its place")]
    FolderNotEmpty,
    /// The file system rejected the change.
    #[error("{0}")]
    Refused(String),
}

/// The effect that an undo or redo will have on a path.
#[derive(Clone, Debug)]
pub(super) enum PathOutcome {
    /// The path will hold the version `to`.
    Restore {
        to: FileVersion,
        /// The content of `to`, if it is the result of a merge and not stored yet.
        content: Option<FileContent>,
    },
    /// The path is a folder that is not removed, because it now contains other files.
    KeepFolder,
    /// The path stays as it is, because of this conflict.
    Conflict(Conflict),
}

/// A path to which an undo or redo applies, with the outcome planned for it.
#[derive(Clone, Debug)]
pub(super) struct PlannedUndo {
    pub(super) path: PathBuf,
    /// The version before the reversal.
    pub(super) now: FileVersion,
    /// The steps whose changes of the path are reversed.
    pub(super) steps: Vec<StepId>,
    pub(super) outcome: PathOutcome,
}

impl PlannedUndo {
    /// Returns the entry for the change record, or `None` if the path will not change.
    pub(super) fn reversal(&self) -> Option<Reversal> {
        let after = match &self.outcome {
            PathOutcome::Restore { to, .. } => *to,
            PathOutcome::KeepFolder => self.now,
            PathOutcome::Conflict(_) => return None,
        };
        Some(Reversal {
            path: self.path.clone(),
            before: self.now,
            after,
            of: self.steps.clone(),
        })
    }
}

/// Returns the paths of all entries in `folder`, or no paths if `folder` cannot be read.
fn read_entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// True if `path` is a folder and no part of the path is a link.
fn is_real_folder(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real == path) && path.is_dir()
}

/// Gives the planning of an undo read access to the disk and to the stored contents.
pub(super) struct Disk<'a>(pub(super) &'a SqliteVersions);

impl Disk<'_> {
    /// Returns the content with this hash, or `None` if it is not stored.
    fn content(&self, hash: ContentHash) -> Option<Vec<u8>> {
        self.0.read_content(hash).ok()
    }
}

/// Plans an undo. For each path, `selected` lists the steps whose changes are to be reversed.
pub(super) fn plan_undo(
    steps: &[FileStep],
    selected: &BTreeMap<PathBuf, BTreeSet<StepId>>,
    around: &Disk<'_>,
) -> Vec<PlannedUndo> {
    let mut histories: HashMap<&Path, Vec<(&FileStep, &PathChange)>> = HashMap::new();
    for step in steps {
        for change in &step.changes {
            histories
                .entry(&change.path)
                .or_default()
                .push((step, change));
        }
    }
    let planned = selected.iter().map(|(path, of)| {
        let now = disk::version_at(path);
        // The history begins with the first change to be reversed.
        let history = histories.get(path.as_path()).map_or(&[][..], Vec::as_slice);
        let begin = history.partition_point(|(step, _)| Some(&step.id) < of.first());
        let fate =
            plan_path(&history[begin..], of, now, around).unwrap_or_else(PathOutcome::Conflict);
        PlannedUndo {
            path: path.clone(),
            now,
            steps: of.iter().copied().collect(),
            outcome: fate,
        }
    });
    let mut planned: Vec<PlannedUndo> = planned.collect();
    check_folders(&mut planned);
    planned
}

fn plan_path(
    history: &[(&FileStep, &PathChange)],
    of: &BTreeSet<StepId>,
    now: FileVersion,
    around: &Disk<'_>,
) -> Result<PathOutcome, Conflict> {
    // The path already holds the earlier version, or the change was never made.
    if history
        .first()
        .is_some_and(|(_, first)| first.before == now && now.is_saved())
    {
        return Ok(PathOutcome::Restore {
            to: now,
            content: None,
        });
    }
    if history.iter().any(|(_, change)| change.after.is_none()) {
        return Err(Conflict::Uncertain);
    }
    check_unbroken_history(history, of, now)?;
    let mut result = PathState {
        version: now,
        bytes: None,
    };
    for (at, (step, change)) in history.iter().enumerate().rev() {
        if of.contains(&step.id) {
            let later = history[at + 1..]
                .iter()
                .rev()
                .find(|(step, _)| !of.contains(&step.id));
            let overlap = || {
                later.map_or(Conflict::ChangedByOthers, |(step, _)| {
                    changed_later_conflict(step)
                })
            };
            result = subtract_change(result, change, around)?.ok_or_else(overlap)?;
        }
    }
    let content = result
        .version
        .hash()
        .zip(result.bytes)
        .map(|(hash, bytes)| FileContent::pack(hash, bytes));
    Ok(PathOutcome::Restore {
        to: result.version,
        content,
    })
}

fn changed_later_conflict(step: &FileStep) -> Conflict {
    match &step.call {
        Some(call) => Conflict::ChangedLater {
            tool: call.tool.clone(),
            call_id: call.call_id.clone(),
        },
        None => Conflict::ChangedLater {
            tool: "haft".into(),
            call_id: format!("#{}", step.id.0),
        },
    }
}

/// Checks that the recorded history of a path has no gap: each change begins with the version that
/// the previous change produced, and the last change produced the current version.
fn check_unbroken_history(
    history: &[(&FileStep, &PathChange)],
    of: &BTreeSet<StepId>,
    now: FileVersion,
) -> Result<(), Conflict> {
    let begins = history
        .iter()
        .skip(1)
        .map(|(_, change)| change.before)
        .chain([now]);
    for ((step, change), next) in history.iter().zip(begins) {
        let taken_back = of.contains(&step.id);
        if taken_back
            && (!change.before.is_saved() || change.after.is_some_and(|after| !after.is_saved()))
        {
            return Err(Conflict::Unsaved);
        }
        if change.after != Some(next) {
            return Err(Conflict::ChangedByOthers);
        }
    }
    Ok(())
}

/// A version of a path, with its content in `bytes` if the content is not stored yet.
struct PathState {
    version: FileVersion,
    bytes: Option<Vec<u8>>,
}

/// Reverses `change` in the state `now` and returns the result, or `None` if a later change
/// overlaps with `change`.
fn subtract_change(
    now: PathState,
    change: &PathChange,
    around: &Disk<'_>,
) -> Result<Option<PathState>, Conflict> {
    let Some(base) = change.after else {
        return Err(Conflict::Uncertain);
    };
    let theirs = change.before;
    if now.version == base {
        return Ok(Some(PathState {
            version: theirs,
            bytes: None,
        }));
    }
    match (base, now.version, theirs) {
        (
            FileVersion::File {
                mode: base_mode,
                hash: base_hash,
                ..
            },
            FileVersion::File {
                mode: our_mode,
                hash: our_hash,
                ..
            },
            FileVersion::File {
                mode: their_mode,
                hash: their_hash,
                ..
            },
        ) => {
            let Ok(mode) = merge::merge_value(&base_mode, our_mode, their_mode) else {
                return Ok(None);
            };
            let merged = match merge::merge_value(&base_hash, our_hash, their_hash) {
                Ok(hash) if hash == our_hash => Some(now),
                Ok(_) => Some(PathState {
                    version: theirs,
                    bytes: None,
                }),
                Err(merge::Overlap) => {
                    merge_stored_texts((base_hash, our_hash, their_hash), now.bytes, around)?
                }
            };
            Ok(merged.map(|state| PathState {
                version: with_mode(state.version, mode),
                ..state
            }))
        }
        (base, ours, theirs) => {
            Ok(merge::merge_value(&base, ours, theirs)
                .ok()
                .map(|version| PathState {
                    version,
                    bytes: None,
                }))
        }
    }
}

fn merge_stored_texts(
    (base, ours, theirs): (ContentHash, ContentHash, ContentHash),
    our_bytes: Option<Vec<u8>>,
    around: &Disk<'_>,
) -> Result<Option<PathState>, Conflict> {
    let stored = |hash| around.content(hash).ok_or(Conflict::Gone);
    let our_bytes = match our_bytes {
        Some(bytes) => bytes,
        None => stored(ours)?,
    };
    Ok(
        merge::merge_lines(&stored(base)?, &our_bytes, &stored(theirs)?)
            .ok()
            .map(|bytes| PathState {
                version: FileVersion::File {
                    mode: 0,
                    size: bytes.len() as u64,
                    hash: ContentHash::from_content(&bytes),
                },
                bytes: Some(bytes),
            }),
    )
}

fn with_mode(version: FileVersion, mode: u32) -> FileVersion {
    match version {
        FileVersion::File { size, hash, .. } => FileVersion::File { mode, size, hash },
        version @ (FileVersion::Absent
        | FileVersion::Link { .. }
        | FileVersion::Folder { .. }
        | FileVersion::Unsaved { .. }) => version,
    }
}

/// Adjusts the plan for folders: a folder that would not be empty is kept, and a path whose parent
/// folder would not exist gets a conflict.
fn check_folders(planned: &mut [PlannedUndo]) {
    let mut after: HashMap<PathBuf, FileVersion> = planned
        .iter()
        .map(|one| (one.path.clone(), planned_version(one)))
        .collect();
    // The paths that the plan creates.
    let comes = planned.iter().filter(|one| {
        one.now == FileVersion::Absent && planned_version(one) != FileVersion::Absent
    });
    let needed: HashSet<PathBuf> = comes
        .filter_map(|one| Some(one.path.parent()?.to_owned()))
        .collect();
    // Deepest paths first: a folder can be removed only if its entries are.
    for one in planned.iter_mut().rev() {
        let (FileVersion::Folder { .. }, PathOutcome::Restore { to, .. }) = (one.now, &one.outcome)
        else {
            continue;
        };
        let stays = match to {
            FileVersion::Folder { .. } => continue,
            FileVersion::Absent => PathOutcome::KeepFolder,
            FileVersion::File { .. } | FileVersion::Link { .. } | FileVersion::Unsaved { .. } => {
                PathOutcome::Conflict(Conflict::FolderNotEmpty)
            }
        };
        let left = |entry: &PathBuf| after.get(entry) != Some(&FileVersion::Absent);
        if needed.contains(&one.path) || read_entries(&one.path).iter().any(left) {
            one.outcome = stays;
            after.insert(one.path.clone(), one.now);
        }
    }
    // Top folders first: the parent of a path must exist or be created.
    let mut made: HashSet<PathBuf> = HashSet::new();
    for one in planned.iter_mut() {
        let (PathOutcome::Restore { to, .. }, Some(parent)) = (&one.outcome, one.path.parent())
        else {
            continue;
        };
        let real = is_real_folder(parent);
        let stays_folder = after
            .get(parent)
            .is_none_or(|version| matches!(version, FileVersion::Folder { .. }));
        let can_leave = one.now == FileVersion::Absent || real;
        let can_arrive =
            *to == FileVersion::Absent || made.contains(parent) || real && stays_folder;
        if !(can_leave && can_arrive) {
            one.outcome = PathOutcome::Conflict(Conflict::FolderGone);
            after.insert(one.path.clone(), one.now);
        } else if matches!(to, FileVersion::Folder { .. })
            && !matches!(one.now, FileVersion::Folder { .. })
        {
            made.insert(one.path.clone());
        }
    }
}

/// Returns the version that a path will hold once the plan is carried out.
fn planned_version(planned: &PlannedUndo) -> FileVersion {
    match &planned.outcome {
        PathOutcome::Restore { to, .. } => *to,
        PathOutcome::KeepFolder | PathOutcome::Conflict(_) => planned.now,
    }
}
