//! Searches a folder with several threads.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use ignore::{DirEntry, WalkState};

use super::collect::{CollectedMatches, SearchProblem};
use super::{FileSearchResult, build_searcher, search_file};
use crate::files::pattern::FilePattern;
use crate::files::walk::GitFolder;
use crate::files::{disk, walk};
use crate::scope::FileScope;

/// Searches all files below a folder for matches.
pub(super) fn search_folder(
    scope: &FileScope,
    root: &Path,
    matcher: &RegexMatcher,
    pattern: Option<&FilePattern>,
) -> CollectedMatches {
    let collected = Mutex::new(CollectedMatches::new(scope.limits));
    let search = FolderSearch {
        scope,
        root,
        pattern,
        collected,
        full: AtomicBool::new(false),
    };
    walk::walk_in_parallel(
        &mut walk::build_walk(scope, root, GitFolder::Entered),
        || {
            // Each thread has its own matcher and searcher, because both keep buffers between files.
            let matcher = matcher.clone();
            let mut searcher = build_searcher();
            let search = &search;
            Box::new(move |found| search.visit_entry(found, &matcher, &mut searcher))
        },
    );
    search
        .collected
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

/// The state that all threads of a search share.
struct FolderSearch<'a> {
    scope: &'a FileScope,
    root: &'a Path,
    pattern: Option<&'a FilePattern>,
    collected: Mutex<CollectedMatches>,
    /// True after some paths can no longer appear in the output. Before that, threads need not lock
    /// `collected` to check a path.
    full: AtomicBool,
}

impl FolderSearch<'_> {
    fn visit_entry(
        &self,
        found: Result<DirEntry, ignore::Error>,
        matcher: &RegexMatcher,
        searcher: &mut Searcher,
    ) -> WalkState {
        if self.scope.cancel.is_cancelled() {
            return WalkState::Quit;
        }
        match found {
            Ok(entry) if !self.can_show(entry.path()) => return WalkState::Skip,
            Ok(entry) if self.should_search(&entry) => {
                let opened = disk::open_walked_file(entry.path());
                match opened.and_then(|file| search_file(self.scope, searcher, matcher, file)) {
                    Ok(searched) => self.add_result(entry.path(), searched),
                    // An unreadable file must not hide the others; it is counted.
                    Err(_) => self
                        .lock_collected()
                        .add_problem(entry.path(), SearchProblem::Unreadable),
                }
            }
            Ok(_) => {}
            Err(error) => self.lock_collected().add_problem(
                error_path(&error).unwrap_or(self.root),
                SearchProblem::Unreadable,
            ),
        }
        WalkState::Continue
    }

    fn should_search(&self, entry: &DirEntry) -> bool {
        entry.file_type().is_some_and(|kind| kind.is_file())
            && self
                .pattern
                .is_none_or(|pattern| pattern.matches(self.root, entry.path()))
    }

    fn can_show(&self, path: &Path) -> bool {
        !self.full.load(Ordering::Relaxed) || self.lock_collected().can_show(path)
    }

    fn add_result(&self, path: &Path, searched: FileSearchResult) {
        if searched.found.is_empty() && searched.trouble.is_none() {
            return;
        }
        let mut collected = self.lock_collected();
        collected.add_result(path, searched);
        self.full.store(collected.is_full(), Ordering::Relaxed);
    }

    fn lock_collected(&self) -> MutexGuard<'_, CollectedMatches> {
        self.collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the path of the entry that caused an error of a folder walk.
fn error_path(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithLineNumber { err, .. } | ignore::Error::WithDepth { err, .. } => {
            error_path(err)
        }
        ignore::Error::Partial(errors) => errors.iter().find_map(error_path),
        ignore::Error::Loop { child, .. } => Some(child),
        ignore::Error::Io(_)
        | ignore::Error::Glob { .. }
        | ignore::Error::UnrecognizedFileType(_)
        | ignore::Error::InvalidDefinition => None,
    }
}
