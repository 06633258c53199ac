//! The change record as it is shown and exported: what became of each file, and what each step did,
//! in order.
//!
//! Invariant: a path is listed once, and only if it holds something else than when the conversation
//! began.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use haft_tool::CallName;
use haft_types::Timestamp;
use similar::TextDiff;

use super::active;
use crate::versions::{FileStep, FileVersion, PathChange, StepId, StepKind};

/// What happened to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummaryKind {
    /// It was not there before.
    Added,
    /// It holds something else.
    Modified,
    /// It is gone.
    Deleted,
    /// It was another path before.
    Moved {
        /// That path.
        from: PathBuf,
    },
}

/// What became of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSummary {
    /// The path.
    pub path: PathBuf,
    /// What happened to it.
    pub kind: SummaryKind,
    /// What it held; for a moved one, what the other path held.
    pub before: FileVersion,
    /// What it holds; none when haft was stopped while it changed it.
    pub after: Option<FileVersion>,
}

/// What a step did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSummary {
    /// Its number.
    pub id: StepId,
    /// What it is.
    pub kind: StepKind,
    /// The call that did it.
    pub call: Option<CallName>,
    /// When.
    pub at: Timestamp,
    /// Whether all of it was taken back.
    pub taken_back: bool,
    /// The paths it changed.
    pub files: Vec<FileSummary>,
}

/// The change record of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangesSummary {
    /// What became of each path since the conversation began. A file added by it stays added,
    /// whatever happened to it since.
    pub files: Vec<FileSummary>,
    /// What each step did, in order.
    pub steps: Vec<StepSummary>,
}

/// A path from the first change to the last.
struct Span {
    before: FileVersion,
    after: Option<FileVersion>,
}

pub(super) fn summarise(steps: &[FileStep]) -> ChangesSummary {
    let mut spans: BTreeMap<PathBuf, Span> = BTreeMap::new();
    // Where the content of a path was when the conversation began.
    let mut origins: HashMap<PathBuf, PathBuf> = HashMap::new();
    for step in steps {
        for (from, to) in moves(&step.changes) {
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
        taken_back: active(steps, step).is_empty(),
        files: files_of(
            step.changes.iter().map(|change| {
                (
                    change.path.clone(),
                    Span {
                        before: change.before,
                        after: change.after,
                    },
                )
            }),
            &moves(&step.changes)
                .into_iter()
                .map(|(from, to)| (to.to_owned(), from.to_owned()))
                .collect(),
        ),
    };
    ChangesSummary {
        files: files_of(spans, &origins),
        steps: steps.iter().map(summary).collect(),
    }
}

fn files_of(
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
    // A folder is worth a line only when nothing in it is.
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

/// The files of one step that went at one path and came at another, unchanged.
fn moves(changes: &[PathChange]) -> Vec<(&Path, &Path)> {
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

/// The difference of two contents as people and programs know it; none when either is not text.
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
