//! Summarizes the change record for display and export: the overall change of each file, and the
//! changes of each step in order.
//!
//! Invariant: a path is listed once, and only if its content differs from that at the start of the
//! conversation.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use haft_tool::CallName;
use haft_types::Timestamp;
use similar::TextDiff;

use super::find_active_changes;
use crate::versions::{FileStep, FileVersion, PathChange, StepId, StepKind};

/// The kind of a change to a path: added, modified, deleted or moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummaryKind {
    /// The path did not exist before the change.
    Added,
    /// The content of the path changed.
    Modified,
    /// The path no longer exists after the change.
    Deleted,
    /// The file was moved here from another path.
    Moved {
        /// The path from which the file was moved.
        from: PathBuf,
    },
}

/// A change to one path, in the form used for display and export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSummary {
    pub path: PathBuf,
    pub kind: SummaryKind,
    /// The version before the change. For a moved file, the version at the old path.
    pub before: FileVersion,
    /// The version after the change. `None` if haft was killed while it changed the path.
    pub after: Option<FileVersion>,
}

/// The changes made by one call, undo or redo, in the form used for display and export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSummary {
    pub id: StepId,
    pub kind: StepKind,
    /// The call that made the changes, or `None` if the user requested the undo or redo.
    pub call: Option<CallName>,
    /// The time at which the step began.
    pub at: Timestamp,
    /// True if none of the step's changes is in effect any more, because later steps reversed them.
    pub taken_back: bool,
    /// The paths that the step changed.
    pub files: Vec<FileSummary>,
}

/// The file changes of a conversation, in the form used for display and export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangesSummary {
    /// The overall change of each path since the conversation began. A file that the conversation
    /// added counts as added even if a later step modified it.
    pub files: Vec<FileSummary>,
    /// The changes of each step, oldest step first.
    pub steps: Vec<StepSummary>,
}

/// The version of a path before the first of several changes, and the version after the last one.
struct Span {
    before: FileVersion,
    after: Option<FileVersion>,
}

pub(super) fn summarize_steps(steps: &[FileStep]) -> ChangesSummary {
    let mut spans: BTreeMap<PathBuf, Span> = BTreeMap::new();
    // The path at which each content was when the conversation began.
    let mut origins: HashMap<PathBuf, PathBuf> = HashMap::new();
    for step in steps {
        for (from, to) in find_moves(&step.changes) {
            let origin = origins.remove(from).unwrap_or_else(|| from.to_owned());
            origins.insert(to.to_owned(), origin);
        }
        for change in &step.changes {
            let span = spans.entry(change.path.clone()).or_insert(Span {
                before: change.before,
                after: None,
            });
            span.after = change.after;
        }
    }
    let summary = |step: &FileStep| StepSummary {
        id: step.id,
        kind: step.kind,
        call: step.call.clone(),
        at: step.at,
        taken_back: find_active_changes(steps, step).is_empty(),
        files: summarize_files(
            step.changes.iter().map(|change| {
                (
                    change.path.clone(),
                    Span {
                        before: change.before,
                        after: change.after,
                    },
                )
            }),
            &find_moves(&step.changes)
                .into_iter()
                .map(|(from, to)| (to.to_owned(), from.to_owned()))
                .collect(),
        ),
    };
    ChangesSummary {
        files: summarize_files(spans, &origins),
        steps: steps.iter().map(summary).collect(),
    }
}

fn summarize_files(
    spans: impl IntoIterator<Item = (PathBuf, Span)>,
    origins: &HashMap<PathBuf, PathBuf>,
) -> Vec<FileSummary> {
    let mut files: BTreeMap<PathBuf, FileSummary> = BTreeMap::new();
    for (path, Span { before, after }) in spans {
        let kind = match (before, after) {
            (before, Some(after)) if before == after && before.is_saved() => continue,
            (FileVersion::Absent, _) => SummaryKind::Added,
            (_, Some(FileVersion::Absent)) => SummaryKind::Deleted,
            (_, _) => SummaryKind::Modified,
        };
        files.insert(
            path.clone(),
            FileSummary {
                path,
                kind,
                before,
                after,
            },
        );
    }
    for (to, from) in origins {
        let is = |path: &Path, kind: &SummaryKind| {
            files.get(path).is_some_and(|file| file.kind == *kind)
        };
        if is(to, &SummaryKind::Added)
            && is(from, &SummaryKind::Deleted)
            && let Some(gone) = files.remove(from)
            && let Some(file) = files.get_mut(to)
        {
            file.kind = SummaryKind::Moved { from: from.clone() };
            file.before = gone.before;
        }
    }
    // A folder is listed only if none of its entries is listed.
    let paths: Vec<PathBuf> = files.keys().cloned().collect();
    files.retain(|path, file| {
        let next = paths.partition_point(|other| other <= path);
        let holds_others = paths.get(next).is_some_and(|other| other.starts_with(path));
        !(holds_others && is_folder(file))
    });
    files.into_values().collect()
}

fn is_folder(file: &FileSummary) -> bool {
    let folder = |version: &FileVersion| matches!(version, FileVersion::Folder { .. });
    let nothing = |version: &FileVersion| matches!(version, FileVersion::Absent);
    (folder(&file.before) || nothing(&file.before))
        && file
            .after
            .is_none_or(|after| folder(&after) || nothing(&after))
}

/// Returns the moved files of one step, each with its old and new path. A file counts as moved if
/// it disappeared at one path and appeared unchanged at another.
fn find_moves(changes: &[PathChange]) -> Vec<(&Path, &Path)> {
    let mut gone: HashMap<_, Vec<&Path>> = HashMap::new();
    for change in changes {
        if let (
            FileVersion::File {
                hash, size: 1.., ..
            },
            Some(FileVersion::Absent),
        ) = (change.before, change.after)
        {
            gone.entry(hash).or_default().push(&change.path);
        }
    }
    let mut moves = Vec::new();
    for change in changes {
        let (FileVersion::Absent, Some(FileVersion::File { hash, .. })) =
            (change.before, change.after)
        else {
            continue;
        };
        let Some(candidates) = gone
            .get_mut(&hash)
            .filter(|candidates| !candidates.is_empty())
        else {
            continue;
        };
        let same_name = candidates
            .iter()
            .position(|from| from.file_name() == change.path.file_name());
        moves.push((
            candidates.remove(same_name.unwrap_or(0)),
            change.path.as_path(),
        ));
    }
    moves
}

/// Returns the unified diff of two contents, or `None` if one of them is not text.
pub fn unified_diff(names: (&str, &str), before: &[u8], after: &[u8]) -> Option<String> {
    let text = |bytes| {
        std::str::from_utf8(bytes)
            .ok()
            .filter(|text| !text.contains('\0'))
    };
    let before = text(before)?;
    let after = text(after)?;
    Some(
        TextDiff::from_lines(before, after)
            .unified_diff()
            .header(names.0, names.1)
            .to_string(),
    )
}

#[cfg(test)]
mod tests;
