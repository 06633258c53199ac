//! Applies a planned undo or redo. If the process is killed, each path holds its old or its new
//! version, and the undo or redo can be finished later.
//!
//! Invariant: every change is in the record before it is made. A path that holds neither the
//! planned old version nor the new one was changed by others and is left alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use haft_tools::OpenFolder;

use super::disk::{ReplaceError, replace_path, sync_folder, version_at};
use super::plan::Conflict;
use crate::versions::{
    FileStep, FileVersion, Reversal, SqliteVersions, StepId, StepKind, VersionsError,
};

/// A path that could not be changed, and the reason.
pub(super) type FailedPath = (PathBuf, Conflict);

/// Changes each path as the reversals require, records the result, and returns the paths that could
/// not be changed.
pub(super) fn apply_reversals(
    versions: &SqliteVersions,
    step: StepId,
    mut reversals: Vec<Reversal>,
) -> Result<Vec<FailedPath>, VersionsError> {
    reversals.sort_by(|one, other| one.path.cmp(&other.path));
    let mut failed = Vec::new();
    // Removals first, from the deepest path up; then additions, from the top folder down.
    let (gone, comes): (Vec<_>, Vec<_>) = reversals
        .iter()
        .partition(|one| one.after == FileVersion::Absent);
    for one in gone.into_iter().rev().chain(comes) {
        if let Err(conflict) = reverse_path(versions, step, one) {
            failed.push((one.path.clone(), conflict));
        }
    }
    let folders: BTreeSet<&Path> = reversals
        .iter()
        .filter_map(|one| one.path.parent())
        .collect();
    folders.into_iter().for_each(sync_folder);
    let left: Vec<&Path> = failed.iter().map(|(path, _)| path.as_path()).collect();
    versions.finish_reversal(step, &left)?;
    versions.notify_changed(
        &reversals
            .iter()
            .map(|one| one.path.as_path())
            .collect::<Vec<_>>(),
    )?;
    Ok(failed)
}

/// Finishes undos and redos that a killed process left incomplete. Returns true if there were any
/// incomplete undos or redos.
pub(super) fn finish_incomplete_reversals(
    versions: &SqliteVersions,
    steps: &[FileStep],
) -> Result<bool, VersionsError> {
    let begun: Vec<_> = steps
        .iter()
        .filter(|step| step.kind != StepKind::Call && !step.done)
        .collect();
    for step in &begun {
        let reversals = step.changes.iter().filter_map(|change| {
            let folder = change
                .path
                .parent()
                .and_then(|folder| OpenFolder::open(folder).ok());
            let _ = folder.map(|folder| folder.remove_leftovers(&temporary_prefix(step.id)));
            let of = Vec::new();
            Some(Reversal {
                path: change.path.clone(),
                before: change.before,
                after: change.after?,
                of,
            })
        });
        apply_reversals(versions, step.id, reversals.collect())?;
    }
    Ok(!begun.is_empty())
}

fn reverse_path(
    versions: &SqliteVersions,
    step: StepId,
    reversal: &Reversal,
) -> Result<(), Conflict> {
    let Reversal {
        path,
        before,
        after,
        ..
    } = reversal;
    let now = version_at(path);
    if now == *after {
        return Ok(());
    }
    // While a folder is replaced by a file, or a file by a folder, the path is briefly absent.
    let halfway = now == FileVersion::Absent && is_folder(*before) != is_folder(*after);
    if now != *before && !halfway {
        return Err(Conflict::ChangedByOthers);
    }
    let bytes = match after.hash() {
        Some(hash) => versions
            .read_content(hash)
            .map_err(|error| content_conflict(&error))?,
        None => Vec::new(),
    };
    replace_path(path, (now, *after), &bytes, &temporary_prefix(step)).map_err(
        |error| match error {
            ReplaceError::ChangedMeanwhile => Conflict::ChangedByOthers,
            ReplaceError::Io(error) => Conflict::Refused(error.to_string()),
        },
    )
}

fn content_conflict(error: &VersionsError) -> Conflict {
    match error {
        VersionsError::Gone { .. } => Conflict::Gone,
        VersionsError::DamagedContent { .. }
        | VersionsError::Damaged { .. }
        | VersionsError::Store(_) => Conflict::Refused(error.to_string()),
    }
}

fn is_folder(version: FileVersion) -> bool {
    matches!(version, FileVersion::Folder { .. })
}

/// Returns the prefix of the temporary file names of a step. The prefix is used to find such files
/// after a kill.
fn temporary_prefix(step: StepId) -> String {
    format!(".haft-undo-{}-", step.0)
}
