//! The copies that are kept: which there are, and removing one by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use haft_sandbox::{Git, GitProgram};

use super::Worktree;
use super::sweep::{copies, used};

/// A copy of a project that was made for a sub-agent and is still there.
#[derive(Clone, Debug)]
pub struct KeptCopy {
    /// The sub-agent's conversation, as its id is written in file names.
    pub name: String,
    /// Where it lies.
    pub at: PathBuf,
    /// The top of the repository it is a worktree of; nothing where that cannot be told.
    pub repository: Option<PathBuf>,
    /// When it was made, or something at its top last changed.
    pub used: SystemTime,
}

/// The copies in a folder, last used first.
pub fn kept_copies(folder: &Path) -> Vec<KeptCopy> {
    let kept = |at: PathBuf| {
        let name = at.file_name()?.to_string_lossy().into_owned();
        let used = used(&at)?;
        let link = fs::read_to_string(at.join(".git")).unwrap_or_default();
        let git = link
            .trim()
            .strip_prefix("gitdir: ")
            .map(Path::new)
            .and_then(|place| place.ancestors().nth(2));
        let repository = git
            .filter(|git| git.ends_with(".git"))
            .and_then(Path::parent)
            .map(Path::to_owned);
        Some(KeptCopy {
            name,
            at,
            repository,
            used,
        })
    };
    let mut all: Vec<_> = copies(folder).filter_map(kept).collect();
    all.sort_by_key(|copy| std::cmp::Reverse(copy.used));
    all
}

/// Removes a copy; what it holds and was not merged is in a patch beside it then, whose place is
/// given. `root` is the project it was made of.
pub fn remove_copy(
    program: GitProgram,
    root: &Path,
    copy: &KeptCopy,
) -> Result<Option<PathBuf>, String> {
    let within = copy.at.parent().unwrap_or(root).to_owned();
    let git =
        Git::open(program, root, &within.with_file_name("git")).map_err(|why| why.to_string())?;
    let prefix = root
        .strip_prefix(git.top())
        .unwrap_or(Path::new(""))
        .to_owned();
    let note = copy.at.with_extension("base");
    let base =
        fs::read_to_string(&note).map_err(|error| format!("`{}`: {error}", note.display()))?;
    let root = root.to_owned();
    let at = copy.at.clone();
    let swept = Vec::new();
    let worktree = Worktree {
        git,
        root,
        at,
        within,
        prefix,
        base,
        note,
        swept,
    };
    worktree.forget_index();
    let (patch, left) = worktree.retire()?;
    worktree.forget_index();
    if left.is_empty() {
        Ok(patch.map(|(patch, _)| patch))
    } else {
        Err(left.trim().to_owned())
    }
}
