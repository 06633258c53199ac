//! Preserves write-ahead logs that are damaged in the middle. SQLite reads a log up to the first
//! invalid frame and discards the rest, which is right after a power cut but loses data after
//! damage. Therefore the database and its log are copied first, and `doctor` finds the copies.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::files;
use super::locks::DatabaseUse;
use crate::error::StoreError;
use crate::write_ahead_log::{PAGE_SIZE, WriteAheadLog};

/// The text in the name of a copy between the database's name and the copy's number.
const DAMAGED_SUFFIX: &str = ".damaged-";

/// Returns the copies of a database that were made because its log was damaged, oldest first.
pub fn find_damaged_copies(database: &Path) -> Vec<PathBuf> {
    let mut numbers = list_copy_numbers(database, "").unwrap_or_default();
    numbers.sort_unstable();
    numbers
        .into_iter()
        .map(|number| numbered_copy_path(database, number))
        .collect()
}

/// Copies the database and its log if the log is damaged and has not been copied yet. Does nothing
/// while another process has the database open, because a write in progress looks like damage.
pub fn keep_damaged_log(database: &Path) -> Result<(), StoreError> {
    let log = files::append_suffix(database, "-wal");
    if fs::metadata(&log).map_or(0, |metadata| metadata.len()) == 0 {
        return Ok(());
    }
    let Ok(_alone) = DatabaseUse::lock_exclusive(database) else {
        return Ok(());
    };
    // Opening the database now would lose readable data, so the failure is reported.
    copy_if_damaged(database, &log).map_err(|source| StoreError::Io {
        action: "put a copy aside of",
        path: database.to_path_buf(),
        source,
    })
}

fn copy_if_damaged(database: &Path, log: &Path) -> io::Result<()> {
    if WriteAheadLog::read(&File::open(log)?, PAGE_SIZE)?.is_damaged()
        && !is_log_copied(database, log)?
    {
        copy_with_log(database, log)?;
    }
    Ok(())
}

fn numbered_copy_path(database: &Path, number: u32) -> PathBuf {
    files::append_suffix(database, &format!("{DAMAGED_SUFFIX}{number}"))
}

/// Returns the numbers of the copies whose file names end with `after`.
fn list_copy_numbers(database: &Path, after: &str) -> io::Result<Vec<u32>> {
    let beginning = files::append_suffix(database, DAMAGED_SUFFIX);
    let beginning = beginning
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut numbers = Vec::new();
    for entry in fs::read_dir(haft_files::containing_folder(database))? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let number = name
            .strip_prefix(&beginning)
            .and_then(|rest| rest.strip_suffix(after)?.parse::<u32>().ok());
        numbers.extend(number);
    }
    Ok(numbers)
}

/// True if this log has already been copied. The copy of the database may still be missing, because
/// a process may have been killed right after it copied the log.
fn is_log_copied(database: &Path, log: &Path) -> io::Result<bool> {
    for number in list_copy_numbers(database, "")? {
        let kept = files::append_suffix(&numbered_copy_path(database, number), "-wal");
        if kept.exists() && have_same_content(&kept, log)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn have_same_content(one: &Path, other: &Path) -> io::Result<bool> {
    let mut one = File::open(one)?;
    let mut other = File::open(other)?;
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let mut left = Vec::new();
    let mut right = Vec::new();
    one.read_to_end(&mut left)?;
    other.read_to_end(&mut right)?;
    Ok(left == right)
}

/// Copies the log and then the database. A copy of the database therefore implies a copy of its
/// log.
fn copy_with_log(database: &Path, log: &Path) -> io::Result<()> {
    let taken = list_copy_numbers(database, "")?
        .into_iter()
        .chain(list_copy_numbers(database, "-wal")?)
        .max();
    let copy = numbered_copy_path(database, taken.unwrap_or(0) + 1);
    haft_files::copy_new(log, &files::append_suffix(&copy, "-wal"))?;
    haft_files::copy_new(database, &copy)?;
    haft_files::sync_folder(haft_files::containing_folder(database))
}
