//! Collects the matches that several threads find, with bounded memory.
//!
//! Files arrive in any order, and the output must not depend on this order. Therefore, the files
//! with the smallest paths are kept: as soon as the files before a path fill the output, no file at
//! or after that path can appear in it, and such files need not be searched.
//!
//! Invariant: the files in the output depend only on the folder tree, not on the order of arrival.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_tool::OutputLimits;

use super::FileSearchResult;
use super::sink::FileMatches;

/// The maximum number of files whose search problems are recorded.
const MAX_PROBLEM_FILES: usize = 10_000;

/// The reason why a file was not searched, or not searched completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchProblem {
    /// The file could not be read to its end.
    Unreadable,
    /// The file has lines that are too long, of which only the beginning was searched.
    LongLines,
}

/// The matches found so far by all threads.
pub(super) struct CollectedMatches {
    limits: OutputLimits,
    files: BTreeMap<PathBuf, FileMatches>,
    lines: usize,
    bytes: usize,
    troubled: BTreeMap<PathBuf, SearchProblem>,
    /// The first path that can no longer appear in the output; `None` while every path can.
    end: Option<PathBuf>,
}

impl CollectedMatches {
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

    /// True if a file at or below this path can still appear in the output.
    pub(super) fn can_show(&self, path: &Path) -> bool {
        self.end.as_deref().is_none_or(|end| path < end)
    }

    /// True if some paths can no longer appear in the output.
    pub(super) fn is_full(&self) -> bool {
        self.end.is_some()
    }

    /// Adds the result of searching one file.
    pub(super) fn add_result(&mut self, path: &Path, searched: FileSearchResult) {
        self.add_matches(path, searched.found);
        if let Some(trouble) = searched.trouble {
            self.add_problem(path, trouble);
        }
    }

    fn add_matches(&mut self, path: &Path, found: FileMatches) {
        if found.is_empty() || !self.can_show(path) {
            return;
        }
        self.lines += found.line_count();
        self.bytes += found.byte_count();
        self.files.insert(path.to_owned(), found);
        while let Some((path, last)) = self.files.pop_last() {
            let lines = self.lines - last.line_count();
            let bytes = self.bytes - last.byte_count();
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
    pub(super) fn add_problem(&mut self, path: &Path, trouble: SearchProblem) {
        self.troubled.insert(path.to_owned(), trouble);
        if self.troubled.len() > MAX_PROBLEM_FILES {
            self.troubled.pop_last();
        }
    }

    /// Returns the files in the order of their paths, and the problems of files that could have
    /// appeared in the output.
    pub(super) fn into_outcome(self) -> SearchOutcome {
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

/// The result of a search in a folder or a file.
pub(super) struct SearchOutcome {
    pub(super) files: BTreeMap<PathBuf, FileMatches>,
    pub(super) troubled: BTreeMap<PathBuf, SearchProblem>,
    /// True if files with matches may have been omitted.
    pub(super) more: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown_paths(limits: OutputLimits, files: &[(String, usize)]) -> (Vec<PathBuf>, bool) {
        let mut collected = CollectedMatches::new(limits);
        for (path, lines) in files {
            collected.add_matches(Path::new(path), FileMatches::with_line_count(*lines));
        }
        let finished = collected.into_outcome();
        // The output ends with the first file that does not fit whole.
        let mut used = 0;
        let shown = finished.files.iter().take_while(|(_, found)| {
            let fits = used < limits.lines;
            used += found.line_count();
            fits
        });
        (shown.map(|(path, _)| path.clone()).collect(), finished.more)
    }

    proptest! {
        #[test]
        fn collected_is_independent_of_the_order_of_files(
            files in proptest::collection::btree_map("[a-c]{1,2}(/[a-c]{1,2}){0,2}", 1_usize..6, 1..30),
            seed in any::<u64>(),
        ) {
            let limits = OutputLimits { lines: 12, bytes: 10_000 };
            let sorted: Vec<_> = files.into_iter().collect();
            let mut mixed = sorted.clone();
            mixed.sort_by_key(|(path, _)| path.bytes().fold(seed, |hash, byte| hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte)));
            let one = shown_paths(limits, &sorted);
            let other = shown_paths(limits, &mixed);
            prop_assert_eq!(&one.0, &other.0);
            let all: usize = sorted.iter().map(|(_, lines)| lines).sum();
            prop_assert!(all > 12 || !one.1);
        }
    }
}
