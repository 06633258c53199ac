//! What taking changes back does to each path: a pure function of the record and of what the paths
//! hold now.
//!
//! Invariant: a path is planned to change only if everything that happened to it since the first
//! change to be taken back was haft's own doing. Whatever somebody else left is left as it is, and
//! named. Each path is taken back whole or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use haft_types::ContentHash;

use super::merge;
use crate::versions::{FileContent, FileStep, FileVersion, PathChange, Reversal, StepId};

/// Why a path is not taken back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// It is not as haft left it.
    #[error("someone else changed it since")]
    ChangedByOthers,
    /// Another change of haft, later and not taken back, is in the way.
    #[error("`{tool}` (call {call_id}) changed the same place later; take that back first")]
    ChangedLater {
        /// The tool.
        tool: String,
        /// The later call.
        call_id: String,
    },
    /// What it held before was never saved.
    #[error("what it held before was not saved: it was too large, unreadable or ignored")]
    Unsaved,
    /// haft was killed while it changed it.
    #[error("haft was stopped in the middle of this change, so nobody knows who changed it last")]
    Uncertain,
    /// What it held before was removed to keep the versions within their size.
    #[error("what it held before is no longer stored")]
    Gone,
    /// The folder it was in is not there any more, or is a link now.
    #[error("its folder is gone or is a link now")]
    FolderGone,
    /// A folder is in its place that still holds something.
    #[error("a folder that is not empty is in its place")]
    FolderNotEmpty,
    /// The file system refused.
    #[error("{0}")]
    Refused(String),
}

/// What becomes of a path.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    /// It will hold `to`.
    Restore {
        to: FileVersion,
        /// What a merge made; everything else is stored already.
        content: Option<FileContent>,
    },
    /// A folder that holds other things by now stays.
    Kept,
    /// It stays as it is.
    Conflict(Conflict),
}

/// A path whose changes are to be taken back.
#[derive(Clone, Debug)]
pub(super) struct PlannedUndo {
    pub(super) path: PathBuf,
    /// What it holds now.
    pub(super) now: FileVersion,
    /// Whose changes are taken back.
    pub(super) of: Vec<StepId>,
    pub(super) fate: Fate,
}

impl PlannedUndo {
    /// What goes into the record, if the path will change.
    pub(super) fn reversal(&self) -> Option<Reversal> {
        let after = match &self.fate {
            Fate::Restore { to, .. } => *to,
            Fate::Kept => self.now,
            Fate::Conflict(_) => return None,
        };
        Some(Reversal {
            path: self.path.clone(),
            before: self.now,
            after,
            of: self.of.clone(),
        })
    }
}

/// Where the plan looks things up.
pub(super) trait Surroundings {
    /// What a path holds now.
    fn version(&self, path: &Path) -> FileVersion;
    /// What a folder holds now.
    fn entries(&self, folder: &Path) -> Vec<PathBuf>;
    /// Whether the path is a folder and no part of it is a link.
    fn is_real_folder(&self, path: &Path) -> bool;
    /// A stored content.
    fn content(&self, hash: ContentHash) -> Option<Vec<u8>>;
}

/// Plans to take back these changes: steps, each with the paths of it.
pub(super) fn plan(
    steps: &[FileStep],
    selected: &BTreeMap<PathBuf, BTreeSet<StepId>>,
    around: &dyn Surroundings,
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
        let now = around.version(path);
        // Only what happened since the first of the changes that are to be taken back.
        let history = histories.get(path.as_path()).map_or(&[][..], Vec::as_slice);
        let begin = history.partition_point(|(step, _)| Some(&step.id) < of.first());
        let fate = fate_of(&history[begin..], of, now, around).unwrap_or_else(Fate::Conflict);
        PlannedUndo {
            path: path.clone(),
            now,
            of: of.iter().copied().collect(),
            fate,
        }
    });
    let mut planned: Vec<PlannedUndo> = planned.collect();
    check_folders(&mut planned, around);
    planned
}

fn fate_of(
    history: &[(&FileStep, &PathChange)],
    of: &BTreeSet<StepId>,
    now: FileVersion,
    around: &dyn Surroundings,
) -> Result<Fate, Conflict> {
    // Somebody was faster, or the change was never made.
    if history
        .first()
        .is_some_and(|(_, first)| first.before == now && now.is_saved())
    {
        return Ok(Fate::Restore {
            to: now,
            content: None,
        });
    }
    if history.iter().any(|(_, change)| change.after.is_none()) {
        return Err(Conflict::Uncertain);
    }
    check_unbroken(history, of, now)?;
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
            let overlap =
                || later.map_or(Conflict::ChangedByOthers, |(step, _)| changed_later(step));
            result = take_back(result, change, around)?.ok_or_else(overlap)?;
        }
    }
    let content = result
        .version
        .hash()
        .zip(result.bytes)
        .map(|(hash, bytes)| FileContent::pack(hash, bytes));
    Ok(Fate::Restore {
        to: result.version,
        content,
    })
}

fn changed_later(step: &FileStep) -> Conflict {
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

/// Each change must begin where the one before ended, and the last must have left what is there
/// now.
fn check_unbroken(
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

/// A version, with its content where that is not stored.
struct PathState {
    version: FileVersion,
    bytes: Option<Vec<u8>>,
}

/// What is left of `now` without `change`; nothing when the two cannot be told apart.
fn take_back(
    now: PathState,
    change: &PathChange,
    around: &dyn Surroundings,
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
            let Ok(mode) = merge::value(&base_mode, our_mode, their_mode) else {
                return Ok(None);
            };
            let merged = match merge::value(&base_hash, our_hash, their_hash) {
                Ok(hash) if hash == our_hash => Some(now),
                Ok(_) => Some(PathState {
                    version: theirs,
                    bytes: None,
                }),
                Err(merge::Overlap) => {
                    merge_text((base_hash, our_hash, their_hash), now.bytes, around)?
                }
            };
            Ok(merged.map(|state| PathState {
                version: with_mode(state.version, mode),
                ..state
            }))
        }
        (base, ours, theirs) => {
            Ok(merge::value(&base, ours, theirs)
                .ok()
                .map(|version| PathState {
                    version,
                    bytes: None,
                }))
        }
    }
}

fn merge_text(
    (base, ours, theirs): (ContentHash, ContentHash, ContentHash),
    our_bytes: Option<Vec<u8>>,
    around: &dyn Surroundings,
) -> Result<Option<PathState>, Conflict> {
    let stored = |hash| around.content(hash).ok_or(Conflict::Gone);
    let our_bytes = match our_bytes {
        Some(bytes) => bytes,
        None => stored(ours)?,
    };
    Ok(merge::text(&stored(base)?, &our_bytes, &stored(theirs)?)
        .ok()
        .map(|bytes| PathState {
            version: FileVersion::File {
                mode: 0,
                size: bytes.len() as u64,
                hash: ContentHash::of(&bytes),
            },
            bytes: Some(bytes),
        }))
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

/// Folders go only when nothing is left in them, and a path needs a folder to be in.
fn check_folders(planned: &mut [PlannedUndo], around: &dyn Surroundings) {
    let mut after: HashMap<PathBuf, FileVersion> = planned
        .iter()
        .map(|one| (one.path.clone(), outcome(one)))
        .collect();
    // Folders that something will be in that is not there now.
    let comes = planned
        .iter()
        .filter(|one| one.now == FileVersion::Absent && outcome(one) != FileVersion::Absent);
    let needed: HashSet<PathBuf> = comes
        .filter_map(|one| Some(one.path.parent()?.to_owned()))
        .collect();
    // From the leaves up: whether a folder can go depends on what is in it.
    for one in planned.iter_mut().rev() {
        let (FileVersion::Folder { .. }, Fate::Restore { to, .. }) = (one.now, &one.fate) else {
            continue;
        };
        let stays = match to {
            FileVersion::Folder { .. } => continue,
            FileVersion::Absent => Fate::Kept,
            FileVersion::File { .. } | FileVersion::Link { .. } | FileVersion::Unsaved { .. } => {
                Fate::Conflict(Conflict::FolderNotEmpty)
            }
        };
        let left = |entry: &PathBuf| after.get(entry) != Some(&FileVersion::Absent);
        if needed.contains(&one.path) || around.entries(&one.path).iter().any(left) {
            one.fate = stays;
            after.insert(one.path.clone(), one.now);
        }
    }
    // From the root down: what a path is in must be there, or be made.
    let mut made: HashSet<PathBuf> = HashSet::new();
    for one in planned.iter_mut() {
        let (Fate::Restore { to, .. }, Some(parent)) = (&one.fate, one.path.parent()) else {
            continue;
        };
        let real = around.is_real_folder(parent);
        let stays_folder = after
            .get(parent)
            .is_none_or(|version| matches!(version, FileVersion::Folder { .. }));
        let can_leave = one.now == FileVersion::Absent || real;
        let can_arrive =
            *to == FileVersion::Absent || made.contains(parent) || real && stays_folder;
        if !(can_leave && can_arrive) {
            one.fate = Fate::Conflict(Conflict::FolderGone);
            after.insert(one.path.clone(), one.now);
        } else if matches!(to, FileVersion::Folder { .. })
            && !matches!(one.now, FileVersion::Folder { .. })
        {
            made.insert(one.path.clone());
        }
    }
}

/// What a path will hold.
fn outcome(planned: &PlannedUndo) -> FileVersion {
    match &planned.fate {
        Fate::Restore { to, .. } => *to,
        Fate::Kept | Fate::Conflict(_) => planned.now,
    }
}
