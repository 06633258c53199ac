//! Metadata of files and folders, recorded when they were last read. Files whose metadata is
//! unchanged are not read again.
//!
//! The metadata is checked right before a request instead of by a file watcher. On some file
//! systems, a watcher's notifications arrive late, in bursts, or not at all. A check costs a few
//! microseconds per file, misses nothing, and combines successive changes into one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The recorded metadata of a set of paths. An empty set counts as changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stamps(Vec<(PathBuf, Option<PathStamp>)>);

/// The metadata that reveals a change of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PathStamp {
    size: u64,
    mtime_ns: i128,
    inode: u64,
    mode: u32,
}

fn read_stamp(path: &Path) -> Option<PathStamp> {
    let meta = fs::metadata(path).ok()?;
    let mtime_ns = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
    Some(PathStamp {
        size: meta.size(),
        mtime_ns,
        inode: meta.ino(),
        mode: meta.mode(),
    })
}

impl Stamps {
    /// Records the metadata of `paths`. Must be called before the files are read, so that a change
    /// in between is noticed.
    pub(crate) fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut stamps = Self::default();
        stamps.add(paths);
        stamps
    }

    /// Records the metadata of additional paths.
    pub(crate) fn add(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        for path in paths {
            if !self.0.iter().any(|(known, _)| *known == path) {
                let seen = read_stamp(&path);
                self.0.push((path, seen));
            }
        }
    }

    /// Returns true if no path has changed since its metadata was recorded.
    pub(crate) fn is_unchanged(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|(path, seen)| read_stamp(path) == *seen)
    }
}
