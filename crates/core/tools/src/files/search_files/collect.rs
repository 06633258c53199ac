//! What a search with several threads found, bounded while it is being found.
//!
//! Files come in no order, and what goes out must not depend on that. So the files with the
//! smallest paths are kept: as soon as those before a path fill the output, nothing at or behind
//! that path can appear in it any more, and it need not be searched.
//!
//! Invariant: for the same tree the kept files that will be shown are the same, whatever the order
//! they came in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_tool::OutputLimits;

use super::Searched;
use super::sink::FileMatches;

/// The most files whose trouble is remembered.
const MAX_TROUBLED: usize = 10_000;

/// Why a file was not searched, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It could not be read to its end.
    Unreadable,
    /// Lines were so long that only their beginning was searched.
    LongLines,
}

/// Everything found so far.
pub(super) struct Collected {
    limits: OutputLimits,
    files: BTreeMap<PathBuf, FileMatches>,
    lines: usize,
    bytes: usize,
    troubled: BTreeMap<PathBuf, Trouble>,
    /// From here on nothing can be shown any more.
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

    /// Whether what is at this path, or below it, could still be shown.
    pub(super) fn wants(&self, path: &Path) -> bool {
        self.end.as_deref().is_none_or(|end| path < end)
    }

    /// Whether there are paths that are not wanted any more.
    pub(super) fn is_full(&self) -> bool {
        self.end.is_some()
    }

    /// Takes what came of a file.
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
            // Those before it fill the output.
            (self.lines, self.bytes) = (lines, bytes);
            self.end = Some(path);
        }
    }

    /// Notes that a file could not be searched as it should have been.
    pub(super) fn note(&mut self, path: &Path, trouble: Trouble) {
        self.troubled.insert(path.to_owned(), trouble);
        if self.troubled.len() > MAX_TROUBLED {
            self.troubled.pop_last();
        }
    }

    /// The files in order, and the trouble with those that could have been shown.
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

/// What a search came to.
pub(super) struct SearchOutcome {
    pub(super) files: BTreeMap<PathBuf, FileMatches>,
    pub(super) troubled: BTreeMap<PathBuf, Trouble>,
    /// Whether files were left out.
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
        // What is shown ends with the first file that does not fit whole.
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
