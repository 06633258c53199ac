//! Lists the copies of projects that were kept, and removes a copy on request.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use haft_sandbox::{Git, GitProgram};

use super::Worktree;
use super::sweep::{last_used, list_copies};

/// A copy of a project that was made for a sub-agent and still exists.
#[derive(Clone, Debug)]
pub struct KeptCopy {
    /// The conversation id of the sub-agent, encoded as a file name.
    pub name: String,
    /// The path of the copy.
    pub at: PathBuf,
    /// The top folder of the repository whose worktree the copy is, or `None` if unknown.
    pub repository: Option<PathBuf>,
    /// The time at which the copy was created or an entry of its top folder was last added or
    /// removed.
    pub used: SystemTime,
}

/// Returns the copies in `folder`, most recently used first.
pub fn list_kept_copies(folder: &Path) -> Vec<KeptCopy> {
    let kept = |at: PathBuf| {
        let name = at.file_name()?.to_string_lossy().into_owned();
        let used = last_used(&at)?;
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
    let mut all: Vec<_> = list_copies(folder).filter_map(kept).collect();
    all.sort_by_key(|copy| std::cmp::Reverse(copy.used));
    all
}

/// Removes a copy of the project at `root`. If the copy has unmerged changes, they are written to a
/// patch beside the copy, and the path of the patch is returned.
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
    worktree.remove_index();
    let (patch, left) = worktree.archive_and_remove()?;
    worktree.remove_index();
    if left.is_empty() {
        Ok(patch.map(|(patch, _)| patch))
    } else {
        Err(left.trim().to_owned())
    }
}
