//! Copies of the project for sub-agents. Each copy is a git worktree that begins with all files of
//! the project, committed or not, and is merged back when the agent is done.
//!
//! Invariant: the user's branches, index, and stash are never touched. A copy is removed only if no
//! work is lost; an old unused copy is removed after its unmerged changes are written to a file.

mod kept;
mod sweep;

pub use kept::{KeptCopy, list_kept_copies, remove_copy};

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use haft_files::Durability;
use haft_sandbox::{Git, GitError, GitProgram};
use haft_text::sanitize;
use haft_tool::{FileHistory, Workspace};
use haft_tools::{CopyRequest, MergeReport, ProjectCopies, ProjectCopy};
use haft_types::Outcome;

use crate::files::{
    AdoptError, Adoption, MERGE_NOTE_EXTENSION, MergeContent, adopt_changes, write_merge_note,
};

/// The maximum number of paths that a message lists.
const MAX_NAMED_PATHS: usize = 10;
const LINK_MODE: &str = "120000";
const EXECUTABLE_MODE: &str = "100755";
const SUBMODULE_MODE: &str = "160000";
/// The file name of a temporary git index, in the folder that [`Git::own_folder`] returns.
const INDEX_NAME: &str = "index";

/// A copy of the project in which one sub-agent works, as a git worktree.
struct Worktree {
    git: Git,
    root: PathBuf,
    /// The path of the copy's top folder.
    at: PathBuf,
    /// The folder that contains all copies.
    within: PathBuf,
    /// The path of the project in its repository. Empty if the project is the whole repository.
    prefix: PathBuf,
    /// The commit from which the copy was created.
    base: String,
    /// The file beside the copy that contains the commit id `base`.
    note: PathBuf,
    /// Messages about old copies that were removed.
    swept: Vec<String>,
}

/// A snapshot of the project files, stored as a git tree object.
struct TreeSnapshot {
    tree: String,
    /// Paths whose index entry was kept because a git filter applies to them.
    filtered: Vec<OsString>,
}

/// Project paths that are not merged because a git filter applies to them. `made` lists those that
/// the agent wrote, and `absent` those that were missing from the copy from the start.
struct LeftOut {
    made: Vec<PathBuf>,
    absent: Vec<PathBuf>,
}

/// Creates copies of projects for sub-agents, as worktrees of the projects' git repositories.
pub struct GitWorktrees;

impl ProjectCopies for GitWorktrees {
    fn open_copy(&self, request: &CopyRequest<'_>) -> Result<Box<dyn ProjectCopy>, String> {
        Ok(Box::new(Worktree::open(request)?))
    }
}

impl Worktree {
    fn open(request: &CopyRequest<'_>) -> Result<Self, String> {
        let root = &request.workspace.root;
        let folder = request.folder;
        let running = request.running;
        if !request.trusted {
            return Err(format!(
                "it works in a git worktree, but `{}` is not trusted, so git is not run in it",
                root.display()
            ));
        }
        let failed = |error: std::io::Error| format!("`{}`: {error}", folder.display());
        haft_files::create_folder(folder).map_err(failed)?;
        let within = folder.canonicalize().map_err(failed)?;
        let git = GitProgram::find(
            running.supervisor(),
            running.sandbox(),
            request.environment,
            &[root],
        )
        .and_then(|program| Git::open(program, root, &within.with_file_name("git")))
        .map_err(|why| {
            format!(
                "it works in a git worktree, and `{}` is not in a git repository ({why})",
                root.display()
            )
        })?;
        let prefix = root
            .strip_prefix(git.top())
            .unwrap_or(Path::new(""))
            .to_owned();
        let name = request.conversation.file_name();
        let at = within.join(&name);
        let note = within.join(format!("{name}.base"));
        let known = fs::read_to_string(&note).ok().filter(|_| at.is_dir());
        let base = String::new();
        let swept = Vec::new();
        let mut worktree = Self {
            git,
            root: root.clone(),
            at,
            within,
            prefix,
            base,
            note,
            swept,
        };
        worktree.swept = worktree.sweep_old_copies(request.now);
        worktree.base = match known {
            Some(base) => base,
            None => worktree
                .create()
                .map_err(|why| format!("its git worktree cannot be made: {why}"))?,
        };
        Ok(worktree)
    }

    fn create(&self) -> Result<String, GitError> {
        let failed = |source| GitError::Prepare {
            at: self.at.clone(),
            source,
        };
        // A copy of the user's index saves git from reading all files again.
        let index = self.git.own_folder().join(INDEX_NAME);
        drop(fs::copy(self.git.index_path(), &index));
        let project = self.git.for_writing(self.git.top(), INDEX_NAME)?;
        let tree = snapshot_tree(&project)?.tree;
        let head = self
            .git
            .run_for_line(["rev-parse", "--verify", "--quiet", "HEAD"])
            .ok();
        let parent = head.iter().flat_map(|head| ["-p", head.as_str()]);
        let commit = [
            "commit-tree",
            "-m",
            "haft: the project when a sub-agent began",
            &tree,
        ];
        let base = project.run_for_line(commit.into_iter().chain(parent))?;
        self.git.add_worktree(&self.at, &base, &self.within)?;
        self.git.for_writing(&self.at, INDEX_NAME)?.run([
            "checkout-index",
            "--all",
            "--quiet",
            "-u",
        ])?;
        fs::copy(&index, self.git.worktree_index_path(&self.at)?).map_err(failed)?;
        haft_files::replace_file(&self.note, base.as_bytes(), Durability::Process)
            .map_err(failed)?;
        Ok(base)
    }

    /// Returns the changes made in the copy since it was created, and the paths left out of the
    /// merge. Ignored files are not considered.
    fn list_changes(&self) -> Result<(Vec<Adoption>, LeftOut), GitError> {
        let copy = self.git.for_writing(&self.at, INDEX_NAME)?;
        if !self.git.own_folder().join(INDEX_NAME).exists() {
            copy.run(["read-tree", &self.base])?;
        }
        let TreeSnapshot { tree, filtered } = snapshot_tree(&copy)?;
        let filtered = filtered.iter().filter_map(|path| {
            let inside = Path::new(path).strip_prefix(&self.prefix).ok()?;
            Some((
                exists_without_links(&self.at, Path::new(path)),
                self.root.join(inside),
            ))
        });
        let (made, absent): (Vec<_>, Vec<_>) = filtered.partition(|(stands, _)| *stands);
        let [made, absent] =
            [made, absent].map(|all| all.into_iter().map(|(_, path)| path).collect());
        let raw = copy.run(["diff-tree", "-r", "-z", "--no-renames", &self.base, &tree])?;
        let mut fields = raw.split(|byte| *byte == 0);
        let mut changes = Vec::new();
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let about = String::from_utf8_lossy(about);
            let mut modes = about.trim_start_matches(':').split(' ');
            let (Some(before), Some(after)) = (modes.next(), modes.next()) else {
                continue;
            };
            let path = Path::new(OsStr::from_bytes(path));
            let Ok(inside) = path.strip_prefix(&self.prefix) else {
                continue;
            };
            if [before, after].contains(&SUBMODULE_MODE) {
                continue;
            }
            changes.push(Adoption {
                path: self.root.join(inside),
                copy: self.at.join(path),
                base: self.read_base_content(&copy, before, path)?,
            });
        }
        Ok((changes, LeftOut { made, absent }))
    }

    /// Returns the content that a path had when the copy was created, with git filters applied.
    fn read_base_content(
        &self,
        copy: &Git,
        mode: &str,
        path: &Path,
    ) -> Result<MergeContent, GitError> {
        if mode.bytes().all(|digit| digit == b'0') {
            return Ok(MergeContent::Absent);
        }
        let mut object = OsString::from(format!("{}:", self.base)).into_vec();
        object.extend_from_slice(path.as_os_str().as_bytes());
        let how = if mode == LINK_MODE {
            "blob"
        } else {
            "--filters"
        };
        let bytes = copy.run([
            OsStr::new("cat-file"),
            OsStr::new(how),
            OsStr::from_bytes(&object),
        ])?;
        Ok(if mode == LINK_MODE {
            MergeContent::Link { target: bytes }
        } else {
            MergeContent::File {
                bytes,
                executable: mode == EXECUTABLE_MODE,
            }
        })
    }

    /// Removes the copy. Returns an empty string, or a sentence to report if the removal failed: no
    /// work is lost, but the folder takes space and git still lists the worktree.
    fn remove(&self) -> String {
        let removed = self.git.remove_worktree(&self.at, &self.within);
        // The note is removed last: without it, a copy that could not be removed would be unusable.
        match fs::remove_file(&self.note) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(path = %self.note.display(), %error, "a note on a worktree is left");
            }
            Ok(()) | Err(_) => {}
        }
        match removed {
            Ok(()) => String::new(),
            Err(why) => {
                let at = self.at.display();
                tracing::warn!(path = %at, %why, "a worktree is left");
                sanitize(&format!(
                    " Its worktree `{at}` could not be removed ({why}) and can be deleted."
                ))
                .into_owned()
            }
        }
    }

    /// Returns sentences that list the paths left out of the merge, or an empty string if there are
    /// none.
    fn describe_left_out(&self, left_out: &LeftOut) -> String {
        let mut text = String::new();
        for (paths, what) in [
            (&left_out.made, "NOT merged"),
            (&left_out.absent, "Not in its copy"),
        ] {
            if !paths.is_empty() {
                let names = self.format_names(paths.iter());
                text.extend([
                    " ",
                    what,
                    ", because a git filter such as LFS goes over them: ",
                    &names,
                    ".",
                ]);
            }
        }
        text
    }

    fn format_names<'a>(&self, paths: impl Iterator<Item = &'a PathBuf>) -> String {
        let all: Vec<_> = paths
            .map(|path| path.strip_prefix(&self.root).unwrap_or(path))
            .collect();
        let mut shown: Vec<_> = all
            .iter()
            .take(MAX_NAMED_PATHS)
            .map(|path| format!("`{}`", path.display()))
            .collect();
        if all.len() > MAX_NAMED_PATHS {
            shown.push(format!("{} more", all.len() - MAX_NAMED_PATHS));
        }
        sanitize(&shown.join(", ")).into_owned()
    }
}

impl ProjectCopy for Worktree {
    fn cleanup_notes(&self) -> &[String] {
        &self.swept
    }

    fn workspace(&self, of: &Workspace) -> Workspace {
        let root = self.at.join(&self.prefix);
        let cwd = of
            .cwd
            .strip_prefix(&of.root)
            .map_or_else(|_| root.clone(), |below| root.join(below));
        // Git does not track empty folders, so the folder may be missing in the copy.
        let cwd = if cwd.is_dir() { cwd } else { root.clone() };
        Workspace {
            root,
            cwd,
            ..of.clone()
        }
    }

    fn merge_and_remove(
        &self,
        outcome: Outcome,
        history: &dyn FileHistory,
        call: &str,
    ) -> MergeReport {
        let at = self.at.display();
        let kept = |why: &str| MergeReport {
            text: format!("{why} It is kept in `{at}`."),
            ..MergeReport::default()
        };
        let (changes, left_out) = match self.list_changes() {
            Ok(changes) => changes,
            Err(why) => return kept(&format!("Its work could not be merged: {why}.")),
        };
        if changes.is_empty() && left_out.made.is_empty() {
            let text = format!(
                "It changed no files.{}{}",
                self.remove(),
                self.describe_left_out(&left_out)
            );
            return MergeReport {
                text,
                ..MergeReport::default()
            };
        }
        if outcome != Outcome::Completed {
            return kept(&format!(
                "Its work ({}) is not merged, because it is not done; it will be when the agent completes.",
                self.format_names(changes.iter().map(|change| &change.path))
            ));
        }
        // Without the note, temporary files are not cleaned up if this process is killed; the merge
        // itself is not affected.
        let note = self.note.with_extension(MERGE_NOTE_EXTENSION);
        let lock = write_merge_note(&note, &changes);
        let adopted = adopt_changes(&self.root, history, call, &changes);
        drop((fs::remove_file(note), lock));
        match adopted {
            Ok(changed) => {
                let left = if left_out.made.is_empty() {
                    self.remove()
                } else {
                    format!(" It is kept in `{at}`.")
                };
                let text = match changed.as_slice() {
                    [] => "The project has its changes already.".to_owned(),
                    some => format!(
                        "Merged into the project: {}.",
                        self.format_names(some.iter().map(|one| &one.path))
                    ),
                };
                MergeReport {
                    text: text + &left + &self.describe_left_out(&left_out),
                    changes: changed,
                    conflict: false,
                }
            }
            Err(AdoptError::Conflicts(paths)) => MergeReport {
                conflict: true,
                ..kept(&format!(
                    "NOT MERGED, nothing of its work is in the project: {} changed in the project too, at the same places.",
                    self.format_names(paths.iter())
                ))
            },
            Err(AdoptError::Failed(why)) => MergeReport {
                conflict: true,
                ..kept(&format!(
                    "NOT MERGED, nothing of its work is in the project: {why}."
                ))
            },
        }
    }
}

/// Writes all current files as a git tree, after updating the index. Submodules and nested
/// repositories are ignored. Paths with a git filter keep their index entry.
fn snapshot_tree(git: &Git) -> Result<TreeSnapshot, GitError> {
    let known = git.run(["ls-files", "-z", "--cached", "-t", "--stage"])?;
    let others = git.run(["ls-files", "-z", "--others", "--exclude-standard"])?;
    let mut paths = BTreeSet::new();
    let mut left = BTreeSet::new();
    for entry in known.split(|byte| *byte == 0) {
        let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else {
            continue;
        };
        let about = &entry[..tab];
        let path = OsStr::from_bytes(&entry[tab + 1..]);
        if about.starts_with(b"S ") {
            left.insert(path.to_owned());
        } else if !about[2..].starts_with(SUBMODULE_MODE.as_bytes()) {
            paths.insert(path.to_owned());
        }
    }
    let tracked = paths.clone();
    let others = others
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty() && !path.ends_with(b"/"));
    paths.extend(others.map(|path| OsStr::from_bytes(path).to_owned()));
    let asked: Vec<_> = paths.union(&left).cloned().collect();
    let filtered: BTreeSet<_> = git.paths_with_filters(&asked)?.into_iter().collect();
    let kept = paths
        .iter()
        .filter(|path| !filtered.contains(*path))
        .map(OsString::as_os_str);
    let (there, gone): (Vec<_>, Vec<_>) =
        kept.partition(|path| exists_without_links(git.work_tree(), Path::new(path)));
    // A copy of such a file would hold git's stored form instead of the content.
    let absent: Vec<_> = filtered
        .intersection(&tracked)
        .map(OsString::as_os_str)
        .collect();
    for (how, which) in [
        ("--force-remove", gone),
        ("--skip-worktree", absent),
        ("--replace", there),
    ] {
        if !which.is_empty() {
            git.run_with_paths(["update-index", "--add", how, "--stdin"], which)?;
        }
    }
    left.retain(|path| exists_without_links(git.work_tree(), Path::new(path)));
    let filtered = filtered.union(&left).cloned().collect();
    Ok(TreeSnapshot {
        tree: git.run_for_line(["write-tree"])?,
        filtered,
    })
}

/// True if a file or link exists at `path` below `top`, with no link among its parents.
fn exists_without_links(top: &Path, path: &Path) -> bool {
    let at = top.join(path);
    let mut above = path
        .ancestors()
        .skip(1)
        .filter(|folder| *folder != Path::new(""));
    let plain = |folder: &Path| {
        top.join(folder)
            .symlink_metadata()
            .is_ok_and(|found| found.is_dir())
    };
    above.all(plain)
        && at
            .symlink_metadata()
            .is_ok_and(|found| found.is_file() || found.is_symlink())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
mod tests {
    use haft_sandbox::{Sandbox, Supervisor};

    use super::*;

    /// A copy that git refuses to remove is reported with the reason.
    #[test]
    fn copy_that_cannot_be_removed_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let within = folder.path().canonicalize().unwrap();
        let root = within.join("project");
        let at = within.join("copy");
        fs::create_dir(&root).unwrap();
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
            let ran = std::process::Command::new("git")
                .args(identity)
                .args(arguments)
                .current_dir(&root)
                .output();
            assert!(ran.unwrap().status.success(), "{arguments:?}");
        };
        git(&["init", "--quiet"]);
        git(&["commit", "--quiet", "--allow-empty", "-m", "begin"]);
        git(&[
            "worktree",
            "add",
            "--detach",
            "--quiet",
            at.to_str().unwrap(),
        ]);
        git(&["worktree", "lock", at.to_str().unwrap()]);
        let note = within.join("base");
        fs::write(&note, "x").unwrap();
        let supervisor = Supervisor::for_tests().unwrap();
        let sandbox = Sandbox::disabled("a test");
        let program = GitProgram::find(&supervisor, &sandbox, &[], &[]).unwrap();
        let opened = Git::open(program, &root, &within.join("git")).unwrap();
        let prefix = PathBuf::new();
        let base = String::new();
        let worktree = Worktree {
            git: opened,
            root: root.clone(),
            at: at.clone(),
            within,
            prefix,
            base,
            note,
            swept: Vec::new(),
        };
        let text = worktree.remove();
        assert!(
            text.contains(at.to_str().unwrap()) && text.contains("could not be removed (git: "),
            "{text}"
        );
        assert!(!worktree.note.exists());
        git(&["worktree", "unlock", at.to_str().unwrap()]);
        assert_eq!(worktree.remove(), "");
        assert!(!at.exists());
    }
}
