//! Rolls back or completes changes whose process died before they were complete.
//!
//! Invariant: a change of several files is rolled back unless it was complete, so that the files
//! are all old or all new, never a mix. Files that another process has changed since are left
//! unchanged.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::commit::{self, UnrestoredFile};
use super::folder::OpenFolder;
use super::format_unrestored;
use super::journal::{Journal, JournalRecord, JournalStage};
use super::place::{self, OpenFolders, PlaceResult};

/// The maximum number of files that a message about a recovery names.
const MAX_NAMED_FILES: usize = 5;

/// The result of recovering one interrupted change.
#[derive(Debug)]
pub struct Recovery {
    /// The paths of the files in the interrupted change.
    pub files: Vec<PathBuf>,
    pub outcome: RecoveryOutcome,
}

/// The outcome of recovering one interrupted change.
#[derive(Debug)]
pub enum RecoveryOutcome {
    /// No file had been changed yet. The temporary files were removed.
    NothingChanged,
    /// All files had been changed. The temporary files were removed.
    AllChanged,
    /// Some files had been changed. They were rolled back.
    RolledBack,
    /// The change was rolled back, except for files that another process has changed since.
    RolledBackExcept {
        /// The files that were not rolled back, and the paths of their earlier content, as text for
        /// people.
        left: String,
    },
    /// The change could not be rolled back.
    Failed {
        reason: String,
        /// The path of the change's journal, which is kept.
        journal: PathBuf,
    },
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.files.len() == 1 {
            "file"
        } else {
            "files"
        };
        write!(
            f,
            "An interrupted change of {} {plural} (",
            self.files.len()
        )?;
        for (index, file) in self.files.iter().take(MAX_NAMED_FILES).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}`{}`", file.display())?;
        }
        if self.files.len() > MAX_NAMED_FILES {
            write!(f, " and {} more", self.files.len() - MAX_NAMED_FILES)?;
        }
        match &self.outcome {
            RecoveryOutcome::NothingChanged => {
                f.write_str(") was cleared away: nothing had been changed yet.")
            }
            RecoveryOutcome::AllChanged => {
                f.write_str(") was found to be complete: everything had been changed.")
            }
            RecoveryOutcome::RolledBack => {
                f.write_str(") was rolled back: everything is as it was before.")
            }
            RecoveryOutcome::RolledBackExcept { left } => {
                write!(
                    f,
                    ") was rolled back, except where someone else changed a file since: {left}."
                )
            }
            RecoveryOutcome::Failed { reason, journal } => write!(
                f,
                ") could not be rolled back: {reason}. What was under way is noted in `{}`; look at these files.",
                journal.display()
            ),
        }
    }
}

/// Recovers all changes of dead processes that have a journal in the folder `journal`. Changes of
/// living processes are left unchanged.
pub fn recover_changes(journal: &Path) -> io::Result<Vec<Recovery>> {
    let listed = match std::fs::read_dir(journal) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        result => result?,
    };
    let mut paths = listed
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let mut recovered = Vec::new();
    for path in paths {
        let Some(stage) = JournalStage::from_path(&path) else {
            continue;
        };
        let Some(journal) = Journal::take_over(&path)? else {
            continue;
        };
        match journal.read_record()? {
            Some(record) => recovered.push(recover_change(journal, &record, stage)),
            // No file had been changed yet, or the only file is old or new as it is.
            None if matches!(stage, JournalStage::Writing | JournalStage::Single) => {
                journal.remove_file();
            }
            None => recovered.push(Recovery {
                files: Vec::new(),
                outcome: report_damaged_journal(journal),
            }),
        }
    }
    Ok(recovered)
}

/// Reports a journal that was once written completely and is now damaged.
fn report_damaged_journal(journal: Journal) -> RecoveryOutcome {
    RecoveryOutcome::Failed {
        reason: "its journal is damaged".into(),
        journal: journal.set_aside(),
    }
}

fn recover_change(journal: Journal, record: &JournalRecord, stage: JournalStage) -> Recovery {
    let mut folders = OpenFolders::default();
    let outcome = match stage {
        JournalStage::Writing => {
            commit::discard_prepared_files(record, &mut folders);
            RecoveryOutcome::NothingChanged
        }
        JournalStage::Done => {
            commit::discard_temporary_files(record, &mut folders);
            RecoveryOutcome::AllChanged
        }
        JournalStage::Placing => match commit::roll_back(record, &mut folders) {
            Ok(left) => rollback_outcome(&left, RecoveryOutcome::RolledBack),
            Err(error) => return report_failure(journal, record, &error),
        },
        JournalStage::Single => match finish_single_file(record, &mut folders) {
            Ok(outcome) => outcome,
            Err(error) => return report_failure(journal, record, &error),
        },
    };
    journal.remove_file();
    Recovery {
        files: changed_paths(record),
        outcome,
    }
}

/// Recovers a change of a single file. The file has either its old or its new content, and keeps
/// it. The content under the temporary name is removed, unless another process wrote it.
fn finish_single_file(
    record: &JournalRecord,
    folders: &mut OpenFolders,
) -> io::Result<RecoveryOutcome> {
    let [entry] = record.entries.as_slice() else {
        return Err(io::Error::other("its journal is damaged"));
    };
    match folders.get_or_open(entry.folder(), OpenFolder::open) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(RecoveryOutcome::NothingChanged);
        }
        Ok(folder) if place::finish_placing(&folder, entry)? == PlaceResult::Done => {
            return Ok(RecoveryOutcome::AllChanged);
        }
        result => drop(result?),
    }
    Ok(rollback_outcome(
        &commit::roll_back(record, folders)?,
        RecoveryOutcome::NothingChanged,
    ))
}

fn report_failure(journal: Journal, record: &JournalRecord, error: &io::Error) -> Recovery {
    let outcome = RecoveryOutcome::Failed {
        reason: error.to_string(),
        journal: journal.set_aside(),
    };
    Recovery {
        files: changed_paths(record),
        outcome,
    }
}

fn rollback_outcome(left: &[UnrestoredFile], all: RecoveryOutcome) -> RecoveryOutcome {
    if left.is_empty() {
        all
    } else {
        RecoveryOutcome::RolledBackExcept {
            left: format_unrestored(left),
        }
    }
}

fn changed_paths(record: &JournalRecord) -> Vec<PathBuf> {
    record
        .entries
        .iter()
        .map(|entry| entry.path.clone())
        .collect()
}
