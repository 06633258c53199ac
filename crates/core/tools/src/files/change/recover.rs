//! After a process died in the middle of a change: what it did is taken back.
//!
//! Invariant: a change of several files is taken back unless it was done, so that files are as they
//! were or as they should become, never a mix; and what someone else changed since is left alone.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::commit::{self, Left};
use super::folder::OpenFolder;
use super::journal::{Journal, JournalRecord, JournalStage};
use super::list;
use super::place::{self, OpenFolders, Placed};

/// How many files a message names.
const NAMED: usize = 5;

/// A change that was interrupted, and what came of it.
#[derive(Debug)]
pub struct Recovery {
    /// The files it was about.
    pub files: Vec<PathBuf>,
    /// What was found and done.
    pub outcome: RecoveryOutcome,
}

/// What came of an interrupted change.
#[derive(Debug)]
pub enum RecoveryOutcome {
    /// No file had been changed yet; temporary files were removed.
    NothingChanged,
    /// All files had been changed; temporary files were removed.
    AllChanged,
    /// Some had been changed and are again what they were.
    RolledBack,
    /// As before, except for files that someone else changed since, which were left.
    RolledBackExcept {
        /// These files, with the place of their earlier content, for people.
        left: String,
    },
    /// It could not be taken back.
    Failed {
        /// Why.
        reason: String,
        /// Where it is noted what was under way.
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
        for (index, file) in self.files.iter().take(NAMED).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}`{}`", file.display())?;
        }
        if self.files.len() > NAMED {
            write!(f, " and {} more", self.files.len() - NAMED)?;
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

/// Finishes what processes that are gone left behind in this journal folder. Changes of living
/// processes are left alone.
pub fn recover(journal: &Path) -> io::Result<Vec<Recovery>> {
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
        let Some(stage) = JournalStage::of(&path) else {
            continue;
        };
        let Some(journal) = Journal::take_over(&path)? else {
            continue;
        };
        match journal.record()? {
            Some(record) => recovered.push(finish(journal, &record, stage)),
            // Nothing had been done yet, or the only file is old or new as it is.
            None if matches!(stage, JournalStage::Writing | JournalStage::Single) => {
                journal.remove();
            }
            None => recovered.push(Recovery {
                files: Vec::new(),
                outcome: unreadable(journal),
            }),
        }
    }
    Ok(recovered)
}

/// A journal that was on disk whole and is not any more.
fn unreadable(journal: Journal) -> RecoveryOutcome {
    RecoveryOutcome::Failed {
        reason: "its journal is damaged".into(),
        journal: journal.give_up(),
    }
}

fn finish(journal: Journal, record: &JournalRecord, stage: JournalStage) -> Recovery {
    let mut folders = OpenFolders::default();
    let outcome = match stage {
        JournalStage::Writing => {
            commit::discard(record, &mut folders);
            RecoveryOutcome::NothingChanged
        }
        JournalStage::Done => {
            commit::discard_temporaries(record, &mut folders);
            RecoveryOutcome::AllChanged
        }
        JournalStage::Placing => match commit::roll_back(record, &mut folders) {
            Ok(left) => rolled_back(&left, RecoveryOutcome::RolledBack),
            Err(error) => return failed(journal, record, &error),
        },
        JournalStage::Single => match finish_single(record, &mut folders) {
            Ok(outcome) => outcome,
            Err(error) => return failed(journal, record, &error),
        },
    };
    journal.remove();
    Recovery {
        files: files(record),
        outcome,
    }
}

/// The only file is old or new, and stays so; what was taken out of its place goes, unless it is
/// someone else's.
fn finish_single(record: &JournalRecord, folders: &mut OpenFolders) -> io::Result<RecoveryOutcome> {
    let [entry] = record.entries.as_slice() else {
        return Err(io::Error::other("its journal is damaged"));
    };
    match folders.get(entry.folder(), OpenFolder::open) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(RecoveryOutcome::NothingChanged);
        }
        Ok(folder) if place::finish(&folder, entry)? == Placed::Yes => {
            return Ok(RecoveryOutcome::AllChanged);
        }
        result => drop(result?),
    }
    Ok(rolled_back(
        &commit::roll_back(record, folders)?,
        RecoveryOutcome::NothingChanged,
    ))
}

fn failed(journal: Journal, record: &JournalRecord, error: &io::Error) -> Recovery {
    let outcome = RecoveryOutcome::Failed {
        reason: error.to_string(),
        journal: journal.give_up(),
    };
    Recovery {
        files: files(record),
        outcome,
    }
}

fn rolled_back(left: &[Left], all: RecoveryOutcome) -> RecoveryOutcome {
    if left.is_empty() {
        all
    } else {
        RecoveryOutcome::RolledBackExcept { left: list(left) }
    }
}

fn files(record: &JournalRecord) -> Vec<PathBuf> {
    record
        .entries
        .iter()
        .map(|entry| entry.path.clone())
        .collect()
}
