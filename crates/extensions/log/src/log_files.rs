//! The files of the log: one per day, named by its date in UTC, readable only by their owner.
//!
//! Invariant: a line is one write at the end of the file, so that lines of several processes do not
//! mix. A full file is renamed to `.1.jsonl`, replacing an earlier one, and old files are removed
//! when the file of a new day is created, so the size of the log is bounded. Nothing here returns
//! an error: if the log cannot be written, there is nowhere left to report it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use haft_files::Durability;
use haft_types::Timestamp;
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The number of days that a log file is kept.
const RETENTION_DAYS: i64 = 14;
/// A file of at least this size is renamed before the next line is written.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The folder of the log, to whose files lines are appended.
pub(super) struct LogFolder {
    folder: PathBuf,
    max_file_bytes: u64,
    open: Mutex<Option<OpenLog>>,
}

/// The open file of a day.
struct OpenLog {
    day: Date,
    file: File,
}

impl LogFolder {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            max_file_bytes: MAX_FILE_BYTES,
            open: Mutex::new(None),
        }
    }

    /// Writes a line, with its newline, at the end of its day's file.
    pub(super) fn append(&self, time: Timestamp, line: &[u8]) {
        let day = TimeZone::UTC.to_datetime(time).date();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open
            .as_ref()
            .is_none_or(|open| open.day != day || self.must_reopen(open))
        {
            *open = self.open_file(day);
        }
        if let Some(open) = open.as_mut() {
            // A full disk must not end a run.
            drop(open.file.write_all(line));
        }
    }

    /// Returns true if another file must be opened, because the open file is full or another
    /// process has replaced it. Renames a full file.
    fn must_reopen(&self, open: &OpenLog) -> bool {
        let Ok(held) = open.file.metadata() else {
            return true;
        };
        let path = self.folder.join(log_file_name(open.day));
        let is_named = fs::metadata(&path).is_ok_and(|there| there.ino() == held.ino());
        let is_full = held.len() >= self.max_file_bytes;
        if is_named && is_full {
            let full = self.folder.join(full_file_name(open.day));
            drop(haft_files::rename(&path, &full, Durability::Process));
        }
        !is_named || is_full
    }

    fn open_file(&self, day: Date) -> Option<OpenLog> {
        let path = self.folder.join(log_file_name(day));
        if !path.exists() {
            haft_files::create_folder(&self.folder).ok()?;
            remove_old_files(&self.folder, day);
        }
        let file = haft_files::open_append(&path).ok()?;
        Some(OpenLog { day, file })
    }
}

fn log_file_name(day: Date) -> String {
    format!("haft-{day}.jsonl")
}

fn full_file_name(day: Date) -> String {
    format!("haft-{day}.1.jsonl")
}

/// Parses the name of a log file into its day. The flag is true if the file was renamed because it
/// was full.
fn parse_file_name(path: &Path) -> Option<(Date, bool)> {
    let stem = path
        .file_name()?
        .to_str()?
        .strip_prefix("haft-")?
        .strip_suffix(".jsonl")?;
    let (day, full) = stem
        .strip_suffix(".1")
        .map_or((stem, false), |day| (day, true));
    Some((day.parse().ok()?, full))
}

/// Removes files older than [`RETENTION_DAYS`].
fn remove_old_files(folder: &Path, today: Date) {
    let Ok(oldest) = today.checked_sub(RETENTION_DAYS.days()) else {
        return;
    };
    for path in list_log_files(folder) {
        if parse_file_name(&path).is_some_and(|(day, _)| day < oldest) {
            drop(fs::remove_file(path));
        }
    }
}

/// Lists the files of the log, oldest first.
fn list_log_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut files: Vec<_> = entries
        .filter_map(|path| parse_file_name(&path).map(|(day, full)| (day, !full, path)))
        .collect();
    files.sort();
    files.into_iter().map(|(_, _, path)| path).collect()
}

/// Calls `visit` with every line of the log, oldest first.
pub fn for_each_line(folder: &Path, mut visit: impl FnMut(&str)) {
    for path in list_log_files(folder) {
        let bytes = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes)
            .lines()
            .filter(|line| !line.is_empty())
            .for_each(&mut visit);
    }
}

/// Returns the newest lines that `wanted` accepts, at most `most` of them, oldest first.
pub fn read_newest_lines(folder: &Path, most: usize, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines = Vec::new();
    for path in list_log_files(folder).iter().rev() {
        let bytes = fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let here = text
            .lines()
            .rev()
            .filter(|line| !line.is_empty() && wanted(line))
            .map(str::to_owned);
        lines.extend(here.take(most - lines.len()));
        if lines.len() >= most {
            break;
        }
    }
    lines.reverse();
    lines
}

/// Reads lines that are written to the log from now on.
pub struct Follower {
    folder: PathBuf,
    current: Option<(PathBuf, u64, File)>,
    /// The beginning of a line that is not complete yet.
    rest: Vec<u8>,
}

impl Follower {
    /// Starts at the current end of the log.
    pub fn new(folder: &Path) -> Self {
        let mut follower = Self {
            folder: folder.to_owned(),
            current: None,
            rest: Vec::new(),
        };
        drop(follower.read_new_lines());
        follower.rest.clear();
        follower
    }

    /// Returns the complete lines that were written since the last call.
    pub fn read_new_lines(&mut self) -> Vec<String> {
        let mut lines = self.read_current_file();
        // The newest file is a different one if a new day has begun or the previous file was full.
        // Lines that were written to the previous file come first.
        let newest = list_log_files(&self.folder).pop();
        let inode = newest
            .as_ref()
            .and_then(|path| fs::metadata(path).ok())
            .map(|there| there.ino());
        let same = self.current.as_ref().map(|(_, inode, _)| *inode) == inode;
        if let (false, Some(path), Some(inode)) = (same, newest, inode) {
            self.current = File::open(&path).ok().map(|file| (path, inode, file));
            self.rest.clear();
            lines.extend(self.read_current_file());
        }
        lines
    }

    fn read_current_file(&mut self) -> Vec<String> {
        if let Some((_, _, file)) = &mut self.current {
            drop(file.read_to_end(&mut self.rest));
        }
        let end = self
            .rest
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let whole: Vec<u8> = self.rest.drain(..end).collect();
        String::from_utf8_lossy(&whole)
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn timestamp_on(day: &str) -> Timestamp {
        format!("{day}T10:00:00Z").parse().unwrap()
    }

    fn file_names(folder: &Path) -> Vec<String> {
        list_log_files(folder)
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn append_creates_private_files_only_when_needed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("state/log");
        let log = LogFolder::new(folder.clone());
        assert!(!home.path().join("state").exists());
        log.append(timestamp_on("2026-11-16"), b"one\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&folder), mode(&folder.join("haft-2026-11-16.jsonl"))),
            (0o700, 0o600)
        );
    }

    #[test]
    fn append_writes_one_file_per_day_and_keeps_two_weeks() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("notes.txt"), "mine").unwrap();
        fs::write(home.path().join("haft-somewhen.jsonl"), "mine").unwrap();
        let log = LogFolder::new(home.path().to_owned());
        for day in ["2026-10-31", "2026-11-01", "2026-11-02", "2026-11-16"] {
            log.append(timestamp_on(day), format!("{day}\n").as_bytes());
        }
        assert_eq!(
            file_names(home.path()),
            ["haft-2026-11-02.jsonl", "haft-2026-11-16.jsonl"]
        );
        assert!(
            home.path().join("notes.txt").exists()
                && home.path().join("haft-somewhen.jsonl").exists()
        );
        assert_eq!(
            read_newest_lines(home.path(), 9, |_| true),
            ["2026-11-02", "2026-11-16"]
        );
        assert_eq!(read_newest_lines(home.path(), 1, |_| true), ["2026-11-16"]);
        assert_eq!(
            read_newest_lines(home.path(), 1, |line| line.ends_with("-02")),
            ["2026-11-02"]
        );
    }

    #[test]
    fn append_rotates_a_full_file_and_keeps_the_newest() {
        let home = tempfile::tempdir().unwrap();
        let log = LogFolder {
            max_file_bytes: 20,
            ..LogFolder::new(home.path().to_owned())
        };
        let mut follower = Follower::new(home.path());
        let mut seen = Vec::new();
        for number in 0..50 {
            log.append(
                timestamp_on("2026-11-16"),
                format!("line {number:03}\n").as_bytes(),
            );
            seen.extend(follower.read_new_lines());
        }
        assert_eq!(
            file_names(home.path()),
            ["haft-2026-11-16.1.jsonl", "haft-2026-11-16.jsonl"]
        );
        let size: u64 = list_log_files(home.path())
            .iter()
            .map(|path| fs::metadata(path).unwrap().len())
            .sum();
        assert!(size <= 60, "{size}");
        assert_eq!(
            read_newest_lines(home.path(), 2, |_| true),
            ["line 048", "line 049"]
        );
        let all: Vec<_> = (0..50).map(|number| format!("line {number:03}")).collect();
        assert_eq!(seen, all, "who follows misses nothing");
    }

    #[test]
    fn follower_starts_now_and_waits_for_whole_lines() {
        let home = tempfile::tempdir().unwrap();
        let log = LogFolder::new(home.path().to_owned());
        log.append(timestamp_on("2026-11-15"), b"before\n");
        let mut follower = Follower::new(home.path());
        assert!(follower.read_new_lines().is_empty());
        log.append(timestamp_on("2026-11-15"), b"half a");
        assert!(follower.read_new_lines().is_empty());
        log.append(timestamp_on("2026-11-15"), b" line\n");
        log.append(timestamp_on("2026-11-16"), b"next day\n");
        assert_eq!(follower.read_new_lines(), ["half a line", "next day"]);
    }

    #[test]
    fn append_ignores_a_folder_that_cannot_be_created() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        LogFolder::new(home.path().join("file/log")).append(timestamp_on("2026-11-16"), b"lost\n");
        assert!(read_newest_lines(&home.path().join("file/log"), 5, |_| true).is_empty());
    }
}
