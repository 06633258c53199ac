//! Files and folders as they were when they were last read: as long as size, time and inode are the
//! same, nobody reads them again.
//!
//! They are looked at right before a request instead of being watched: a watcher's notices come
//! late, in bursts, or not at all on some file systems, while a look costs a few microseconds a
//! file, misses nothing, and makes one change of ten.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What was looked at. Nothing yet is never the same.
#[derive(Debug, Default)]
pub(crate) struct Stamps(Vec<(PathBuf, Option<WatchedStamp>)>);

/// Size and time of a file; none when it is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WatchedStamp {
    size: u64,
    mtime_ns: i128,
    inode: u64,
    mode: u32,
}

fn stamp(path: &Path) -> Option<WatchedStamp> {
    let meta = fs::metadata(path).ok()?;
    let mtime_ns = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
    Some(WatchedStamp {
        size: meta.size(),
        mtime_ns,
        inode: meta.ino(),
        mode: meta.mode(),
    })
}

impl Stamps {
    /// Looks at these. Take them before what they stand for is read: what changes in between is
    /// read again.
    pub(crate) fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut stamps = Self::default();
        stamps.add(paths);
        stamps
    }

    /// Looks at more.
    pub(crate) fn add(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        for path in paths {
            if !self.0.iter().any(|(known, _)| *known == path) {
                let seen = stamp(&path);
                self.0.push((path, seen));
            }
        }
    }

    /// Whether everything is as it was.
    pub(crate) fn same(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|(path, seen)| stamp(path) == *seen)
    }
}
