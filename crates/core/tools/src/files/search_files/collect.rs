//! Collects the matches that several threads find, with bounded memory.
//!
//! Files arrive in any order, and the output must not depend on it. Therefore the files with the
//! smallest paths are kept: as soon as the files before a path fill the output, no file at or after
//! that path can appear in it, and such files need not be searched.
//!
//! Invariant: the files that are shown depend only on the tree, not on the order of arrival.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_tool::OutputLimits;

use super::Searched;
use super::sink::FileMatches;

/// The maximum number of files whose problems are kept.
const MAX_TROUBLED: usize = 10_000;

/// The reason why a file was not searched, or not completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The file could not be read to its end.
    Unreadable,
    /// The file has lines so long that only their beginning was searched.
    LongLines,
}

/// The matches found so far.
pub(super) struct Collected {
    limits: OutputLimits,
    files: BTreeMap<PathBuf, FileMatches>,
    lines: usize,
    bytes: usize,
    troubled: BTreeMap<PathBuf, Trouble>,
    /// The first path that can no longer be shown.
    end: Option<PathBuf>,
}

impl Collected {
    pub(super) fn new(limits: OutputLimits) -> Self {
        Self {
            limits,
            files: BTreeMap::new(),
            lines: 0,
            bytes: 0,
            troubled: BTreeMap::new(),
            end: None,
        }
    }

    /// True if a file at or below this path could still be shown.
    pub(super) fn wants(&self, path: &Path) -> bool {
        self.end.as_deref().is_none_or(|end| path < end)
    }

    /// True if some paths can no longer be shown.
    pub(super) fn is_full(&self) -> bool {
        self.end.is_some()
    }

    /// Adds the result of searching one file.
    pub(super) fn take(&mut self, path: &Path, searched: Searched) {
        self.add(path, searched.found);
        if let Some(trouble) = searched.trouble {
            self.note(path, trouble);
        }
    }

    fn add(&mut self, path: &Path, found: FileMatches) {
        if found.is_empty() || !self.wants(path) {
            return;
        }
        self.lines += found.lines();
        self.bytes += found.bytes();
        self.files.insert(path.to_owned(), found);
        while let Some((path, last)) = self.files.pop_last() {
            let lines = self.lines - last.lines();
            let bytes = self.bytes - last.bytes();
            if lines <= self.limits.lines && bytes <= self.limits.bytes {
                self.files.insert(path, last);
                break;
            }
            // The files before this one fill the output.
            (self.lines, self.bytes) = (lines, bytes);
            self.end = Some(path);
        }
    }

    /// Records that a file could not be searched completely.
    pub(super) fn note(&mut self, path: &Path, trouble: Trouble) {
        self.troubled.insert(path.to_owned(), trouble);
        if self.troubled.len() > MAX_TROUBLED {
            self.troubled.pop_last();
        }
    }

    /// Returns the files in order, and the problems of files that could have been shown.
    pub(super) fn finish(self) -> SearchOutcome {
        let Self {
            files,
            mut troubled,
            end,
            ..
        } = self;
        if let Some(end) = &end {
            troubled.retain(|path, _| path < end);
        }
        SearchOutcome {
            files,
            troubled,
            more: end.is_some(),
        }
    }
}

/// The result of a search.
pub(super) struct SearchOutcome {
    pub(super) files: BTreeMap<PathBuf, FileMatches>,
    pub(super) troubled: BTreeMap<PathBuf, Trouble>,
    /// True if files were omitted.
    pub(super) more: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(limits: OutputLimits, files: &[(String, usize)]) -> (Vec<PathBuf>, bool) {
        let mut collected = Collected::new(limits);
        for (path, lines) in files {
            collected.add(Path::new(path), FileMatches::of_lines(*lines));
        }
        let finished = collected.finish();
        // The output ends with the first file that does not fit whole.
        let mut used = 0;
        let shown = finished.files.iter().take_while(|(_, found)| {
            let fits = used < limits.lines;
            used += found.lines();
            fits
        });
        (shown.map(|(path, _)| path.clone()).collect(), finished.more)
    }

    proptest! {
        #[test]
        fn the_order_in_which_files_come_makes_no_difference(
            files in proptest::collection::btree_map("[a-c]{1,2}(/[a-c]{1,2}){0,2}", 1_usize..6, 1..30),
            seed in any::<u64>(),
        ) {
            let limits = OutputLimits { lines: 12, bytes: 10_000 };
            let sorted: Vec<_> = files.into_iter().collect();
            let mut mixed = sorted.clone();
            mixed.sort_by_key(|(path, _)| path.bytes().fold(seed, |hash, byte| hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte)));
            let one = shown(limits, &sorted);
            let other = shown(limits, &mixed);
            prop_assert_eq!(&one.0, &other.0);
            let all: usize = sorted.iter().map(|(_, lines)| lines).sum();
            prop_assert!(all > 12 || !one.1);
        }
    }
}
