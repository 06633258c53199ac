//! Removes old copies of a project.
//!
//! Invariant: before a copy is removed, its unmerged changes are written to a patch beside it, and
//! the removal is reported. A copy that was used within the last day, or that git cannot read, is
//! left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use haft_files::Durability;
use haft_sandbox::GitError;
use haft_text::sanitize;

use super::{INDEX_NAME, Worktree, snapshot_tree};

const DAY: Duration = Duration::from_hours(24);
/// The number of days after which an unused copy is removed.
const MAX_UNUSED_DAYS: u32 = 30;
/// The maximum number of copies kept per project. Further copies are removed unless they were used
/// within a day.
const MAX_KEPT_COPIES: usize = 20;

impl Worktree {
    /// Removes the copies of this project that are too old or exceed the maximum number. Returns
    /// one sentence for each copy whose changes were saved as a patch.
    pub(super) fn sweep_old_copies(&self, now: SystemTime) -> Vec<String> {
        let mut kept: Vec<(Duration, PathBuf)> = list_copies(&self.within)
            .filter(|at| *at != self.at && self.belongs_to_repository(at))
            .filter_map(|at| Some((now.duration_since(last_used(&at)?).ok()?, at)))
            .collect();
        kept.sort();
        // A copy in use was changed within the last day.
        let old = kept.into_iter().enumerate().filter(|(index, (age, _))| {
            *age > DAY * MAX_UNUSED_DAYS || (*index >= MAX_KEPT_COPIES && *age > DAY)
        });
        let messages = old
            .filter_map(|(_, (age, at))| self.archive_old_copy(at, age))
            .collect();
        self.remove_index();
        messages
    }

    /// Removes the temporary git index, because the index of one copy does not fit another.
    pub(super) fn remove_index(&self) {
        drop(fs::remove_file(self.git.own_folder().join(INDEX_NAME)));
    }

    /// True if the copy is a worktree of this project's repository.
    fn belongs_to_repository(&self, at: &Path) -> bool {
        let link = fs::read_to_string(at.join(".git")).unwrap_or_default();
        let place = link.trim().strip_prefix("gitdir: ").map(Path::new);
        let worktrees = self.git.top().join(".git").join("worktrees");
        place.is_some_and(|place| place.starts_with(worktrees))
    }

    /// Removes one old copy. If the copy contained changes, saves them as a patch and returns a
    /// sentence that reports it.
    fn archive_old_copy(&self, at: PathBuf, age: Duration) -> Option<String> {
        let note = at.with_extension("base");
        let base = fs::read_to_string(&note).ok()?;
        self.remove_index();
        let git = self.git.for_writing(self.git.top(), INDEX_NAME).ok()?;
        let root = self.root.clone();
        let within = self.within.clone();
        let prefix = self.prefix.clone();
        let old = Self {
            git,
            root,
            at,
            within,
            prefix,
            base,
            note,
            swept: Vec::new(),
        };
        let (patch, left) = old.archive_and_remove().ok()?;
        let (patch, names) = patch?;
        let days = age.as_secs() / DAY.as_secs();
        let patch = patch.display();
        let text = format!(
            "a copy of the project was not used for {days} days and is removed; its changes to {names}, which were not merged, are in `{patch}`."
        );
        Some(sanitize(&text).into_owned() + &left)
    }

    /// Removes the copy. If it has unmerged changes, they are first written to a patch; the result
    /// then contains the path of the patch and the names of the changed files. The last string is
    /// empty, or a sentence to report if the copy could not be removed completely.
    pub(super) fn archive_and_remove(&self) -> Result<(Option<(PathBuf, String)>, String), String> {
        let (changes, left_out) = self.list_changes().map_err(|why| why.to_string())?;
        if !left_out.made.is_empty() {
            let names = self.format_names(left_out.made.iter());
            return Err(format!(
                "a git filter such as LFS goes over {names}, which no patch can hold"
            ));
        }
        let mut kept = None;
        if !changes.is_empty() {
            let patch = self.at.with_extension("patch");
            let bytes = self.make_patch().map_err(|why| why.to_string())?;
            haft_files::replace_file(&patch, &bytes, Durability::PowerCut)
                .map_err(|error| format!("`{}`: {error}", patch.display()))?;
            kept = Some((
                patch,
                self.format_names(changes.iter().map(|change| &change.path)),
            ));
        }
        Ok((kept, self.remove()))
    }

    /// Returns the difference from the copy's base commit, in the format of `git apply`.
    fn make_patch(&self) -> Result<Vec<u8>, GitError> {
        let copy = self.git.for_writing(&self.at, INDEX_NAME)?;
        let tree = snapshot_tree(&copy)?.tree;
        let how = [
            "diff-tree",
            "-r",
            "-p",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
        ];
        copy.run(how.into_iter().chain([self.base.as_str(), tree.as_str()]))
    }
}

/// Returns the copies in the folder `within`. A subfolder counts as a copy if the file with its
/// base commit is beside it.
pub(super) fn list_copies(within: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(within)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    entries.filter(|at| at.is_dir() && at.with_extension("base").is_file())
}

/// Returns the time a copy was last used: when it was created, or when an entry of its top folder
/// was added or removed.
pub(super) fn last_used(at: &Path) -> Option<SystemTime> {
    let of = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
    of(at).max(of(&at.with_extension("base")))
}
