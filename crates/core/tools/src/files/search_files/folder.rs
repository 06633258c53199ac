//! Searches a folder with several threads.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use ignore::{DirEntry, WalkState};

use super::collect::{Collected, Trouble};
use super::{Searched, search_file, searcher};
use crate::files::pattern::FilePattern;
use crate::files::walk::GitFolder;
use crate::files::{disk, walk};
use crate::scope::FileScope;

/// Searches all files below a folder.
pub(super) fn search(
    scope: &FileScope,
    root: &Path,
    matcher: &RegexMatcher,
    pattern: Option<&FilePattern>,
) -> Collected {
    let collected = Mutex::new(Collected::new(scope.limits));
    let search = FolderSearch {
        scope,
        root,
        pattern,
        collected,
        full: AtomicBool::new(false),
    };
    walk::in_parallel(&mut walk::builder(scope, root, GitFolder::Entered), || {
        // Each thread has its own matcher and searcher, because both keep buffers between files.
        let matcher = matcher.clone();
        let mut searcher = searcher();
        let search = &search;
        Box::new(move |found| search.visit(found, &matcher, &mut searcher))
    });
    search
        .collected
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

/// The state that all threads share.
struct FolderSearch<'a> {
    scope: &'a FileScope,
    root: &'a Path,
    pattern: Option<&'a FilePattern>,
    collected: Mutex<Collected>,
    /// True if some paths can no longer be shown. Until then, threads need not lock `collected` to
    /// ask.
    full: AtomicBool,
}

impl FolderSearch<'_> {
    fn visit(
        &self,
        found: Result<DirEntry, ignore::Error>,
        matcher: &RegexMatcher,
        searcher: &mut Searcher,
    ) -> WalkState {
        if self.scope.cancel.is_cancelled() {
            return WalkState::Quit;
        }
        match found {
            Ok(entry) if !self.wants(entry.path()) => return WalkState::Skip,
            Ok(entry) if self.is_meant(&entry) => {
                let opened = disk::open_walked(entry.path());
                match opened.and_then(|file| search_file(self.scope, searcher, matcher, file)) {
                    Ok(searched) => self.take(entry.path(), searched),
                    // An unreadable file must not hide the others; it is counted.
                    Err(_) => self.collected().note(entry.path(), Trouble::Unreadable),
                }
            }
            Ok(_) => {}
            Err(error) => self
                .collected()
                .note(path_of(&error).unwrap_or(self.root), Trouble::Unreadable),
        }
        WalkState::Continue
    }

    fn is_meant(&self, entry: &DirEntry) -> bool {
        entry.file_type().is_some_and(|kind| kind.is_file())
            && self
                .pattern
                .is_none_or(|pattern| pattern.matches(self.root, entry.path()))
    }

    fn wants(&self, path: &Path) -> bool {
        !self.full.load(Ordering::Relaxed) || self.collected().wants(path)
    }

    fn take(&self, path: &Path, searched: Searched) {
        if searched.found.is_empty() && searched.trouble.is_none() {
            return;
        }
        let mut collected = self.collected();
        collected.take(path, searched);
        self.full.store(collected.is_full(), Ordering::Relaxed);
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the path that an error of a walk is about.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithLineNumber { err, .. } | ignore::Error::WithDepth { err, .. } => {
            path_of(err)
        }
        ignore::Error::Partial(errors) => errors.iter().find_map(path_of),
        ignore::Error::Loop { child, .. } => Some(child),
        ignore::Error::Io(_)
        | ignore::Error::Glob { .. }
        | ignore::Error::UnrecognizedFileType(_)
        | ignore::Error::InvalidDefinition => None,
    }
}
