//! A copy of the project for one sub-agent: a git worktree that begins with everything the project holds, committed or not, and
//! is merged back when the agent is done.
//!
//! Invariant: the user's branches, index and stash are never touched. The copy is removed only when nothing in it would be lost.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use haft_text::sanitise;
use haft_tool::{FileChange, FileHistory, Workspace};
use haft_types::{ConversationId, Outcome};

use super::git::Git;
use crate::files::{Adoption, Held, NotAdopted, adopt};
use crate::session::SessionConfig;

/// How many paths are named.
const NAMED: usize = 10;
const LINK: &str = "120000";
const EXECUTABLE: &str = "100755";
const SUBMODULE: &str = "160000";

/// The copy of one sub-agent.
pub(super) struct Worktree {
    /// In the project.
    project: Git,
    /// In the copy.
    copy: Git,
    root: PathBuf,
    /// Where the copy lies.
    at: PathBuf,
    /// The project in its repository; empty where it is the whole of it.
    prefix: PathBuf,
    /// The commit it began with.
    base: String,
    notes: Notes,
}

/// Files beside the copy.
struct Notes {
    base: PathBuf,
    index: PathBuf,
}

/// What became of a copy.
#[derive(Default)]
pub(super) struct MergeReport {
    /// For the model; empty where there was no copy.
    pub(super) text: String,
    pub(super) changes: Vec<FileChange>,
    pub(super) conflict: bool,
}

impl Worktree {
    /// The copy that belongs to this conversation: the one it had before, or a new one.
    pub(super) fn open(config: &SessionConfig, conversation: &ConversationId) -> Result<Self, String> {
        let root = &config.folders.workspace.root;
        if !config.knowledge.ground.trusted {
            return Err(format!(
                "it works in a git worktree, but `{}` is not trusted, so git is not run in it",
                root.display()
            ));
        }
        let project = Git::at(root, &config.tools.child_environment);
        let prefix = project.line(["rev-parse", "--show-prefix"]).map_err(|why| {
            format!("it works in a git worktree, and `{}` is not in a git repository ({why})", root.display())
        })?;
        let at = config.folders.worktrees.join(conversation.as_str());
        let beside = |ending: &str| config.folders.worktrees.join(format!("{conversation}.{ending}"));
        let notes = Notes { base: beside("base"), index: beside("index") };
        let copy = Git::at(&at, &config.tools.child_environment);
        let known = fs::read_to_string(&notes.base).ok().filter(|_| at.is_dir());
        let mut worktree =
            Self { project, copy, root: root.clone(), at, prefix: prefix.into(), base: String::new(), notes };
        worktree.base = match known {
            Some(base) => base,
            None => worktree
                .make(&config.folders.worktrees)
                .map_err(|why| format!("its git worktree cannot be made: {why}"))?,
        };
        Ok(worktree)
    }

    fn make(&self, folder: &Path) -> Result<String, String> {
        let told = |error: std::io::Error| format!("`{}`: {error}", folder.display());
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(told)?;
        // What the index knows of files saves git from reading all of them again.
        let own = self.root.join(self.project.line(["rev-parse", "--git-path", "index"])?);
        let _ = fs::remove_file(&self.notes.index);
        drop(fs::copy(own, &self.notes.index));
        let snapshot = self.project.with_index(&self.notes.index);
        let top = snapshot.line(["rev-parse", "--show-toplevel"])?;
        snapshot.run(["-C", &top, "add", "--all"])?;
        let tree = snapshot.line(["write-tree"])?;
        let head = self.project.line(["rev-parse", "--verify", "--quiet", "HEAD"]).ok();
        let parent = head.iter().flat_map(|head| ["-p", head.as_str()]);
        let commit = ["commit-tree", "-m", "haft: the project when a sub-agent began", &tree];
        let base = self.project.line(commit.into_iter().chain(parent))?;
        let add = ["worktree", "add", "--detach", "--force", "--quiet"].map(OsStr::new);
        self.project.run(add.into_iter().chain([self.at.as_os_str(), OsStr::new(&base)]))?;
        fs::write(&self.notes.base, &base).map_err(told)?;
        Ok(base)
    }

    /// The folders the agent works in: those of the project, but for the project itself.
    pub(super) fn workspace(&self, of: &Workspace) -> Workspace {
        let root = self.at.join(&self.prefix);
        let cwd = of.cwd.strip_prefix(&of.root).map_or_else(|_| root.clone(), |below| root.join(below));
        // A folder that git knows nothing of is not in the copy.
        let cwd = if cwd.is_dir() { cwd } else { root.clone() };
        Workspace { root, cwd, ..of.clone() }
    }

    /// Merges what was changed, if the agent is done, and removes the copy if nothing of it would be lost.
    pub(super) fn settle(&self, outcome: Outcome, history: (&dyn FileHistory, &str)) -> MergeReport {
        let at = self.at.display();
        let kept = |why: &str| MergeReport { text: format!("{why} It is kept in `{at}`."), ..MergeReport::default() };
        let changes = match self.changes() {
            Ok(changes) => changes,
            Err(why) => return kept(&format!("Its work could not be merged: {why}.")),
        };
        if changes.is_empty() {
            return MergeReport { text: format!("It changed no files.{}", self.remove()), ..MergeReport::default() };
        }
        if outcome != Outcome::Completed {
            return kept(&format!(
                "Its work ({}) is not merged, because it is not done; it will be when the agent completes.",
                self.names(changes.iter().map(|change| &change.path))
            ));
        }
        match adopt(&self.root, history, &changes) {
            Ok(changed) => {
                let left = self.remove();
                let text = match changed.as_slice() {
                    [] => "The project has its changes already.".to_owned(),
                    some => format!("Merged into the project: {}.", self.names(some.iter().map(|one| &one.path))),
                };
                MergeReport { text: text + &left, changes: changed, conflict: false }
            }
            Err(NotAdopted::Conflicts(paths)) => MergeReport {
                conflict: true,
                ..kept(&format!(
                    "NOT MERGED, nothing of its work is in the project: {} changed in the project too, at the same places.",
                    self.names(paths.iter())
                ))
            },
            Err(NotAdopted::Failed(why)) => MergeReport {
                conflict: true,
                ..kept(&format!("NOT MERGED, nothing of its work is in the project: {why}."))
            },
        }
    }

    /// What is different from what it began with. What git ignores is not looked at.
    fn changes(&self) -> Result<Vec<Adoption>, String> {
        self.copy.run(["add", "--all"])?;
        let tree = self.copy.line(["write-tree"])?;
        let raw = self.copy.run(["diff-tree", "-r", "-z", "--no-renames", &self.base, &tree])?;
        let mut fields = raw.split(|byte| *byte == 0);
        let mut changes = Vec::new();
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let about = String::from_utf8_lossy(about);
            let mut words = about.trim_start_matches(':').split(' ');
            let (Some(before), Some(after)) = (words.next(), words.next()) else { continue };
            let path = Path::new(OsStr::from_bytes(path));
            let Ok(inside) = path.strip_prefix(&self.prefix) else { continue };
            if [before, after].contains(&SUBMODULE) {
                continue;
            }
            changes.push(Adoption {
                path: self.root.join(inside),
                copy: self.at.join(path),
                base: self.base_of(before, path)?,
            });
        }
        Ok(changes)
    }

    /// What a path held when the copy was made, as it stands in files.
    fn base_of(&self, mode: &str, path: &Path) -> Result<Held, String> {
        if mode.bytes().all(|digit| digit == b'0') {
            return Ok(Held::Nothing);
        }
        let mut object = OsString::from(format!("{}:", self.base)).into_vec();
        object.extend_from_slice(path.as_os_str().as_bytes());
        let how = if mode == LINK { "blob" } else { "--filters" };
        let bytes = self.copy.run([OsStr::new("cat-file"), OsStr::new(how), OsStr::from_bytes(&object)])?;
        Ok(if mode == LINK {
            Held::Link { target: bytes }
        } else {
            Held::File { bytes, executable: mode == EXECUTABLE }
        })
    }

    /// Removes the copy. Gives the sentence to add where it is left: nothing of value is in it, but it takes room, and git
    /// goes on to list it.
    fn remove(&self) -> String {
        let remove = ["worktree", "remove", "--force"].map(OsStr::new);
        let removed = self.project.run(remove.into_iter().chain([self.at.as_os_str()]));
        // After the copy: a copy without its notes could not be gone on with.
        for note in [&self.notes.base, &self.notes.index] {
            match fs::remove_file(note) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(path = %note.display(), %error, "a note on a worktree is left");
                }
                Ok(()) | Err(_) => {}
            }
        }
        match removed {
            Ok(_) => String::new(),
            Err(why) => {
                let at = self.at.display();
                tracing::warn!(path = %at, %why, "a worktree is left");
                sanitise(&format!(" Its worktree `{at}` could not be removed ({why}) and can be deleted.")).into_owned()
            }
        }
    }

    fn names<'a>(&self, paths: impl Iterator<Item = &'a PathBuf>) -> String {
        let all: Vec<_> = paths.map(|path| path.strip_prefix(&self.root).unwrap_or(path)).collect();
        let mut shown: Vec<_> = all.iter().take(NAMED).map(|path| format!("`{}`", path.display())).collect();
        if all.len() > NAMED {
            shown.push(format!("{} more", all.len() - NAMED));
        }
        sanitise(&shown.join(", ")).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A copy that git does not let go is named to whoever asked for the work, with the reason.
    #[test]
    fn a_copy_that_cannot_be_removed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (root, at) = (folder.path().join("project"), folder.path().join("copy"));
        fs::create_dir(&root).unwrap();
        let project = Git::at(&root, &Arc::default());
        project.run(["init", "--quiet"]).unwrap();
        project.run(["commit", "--quiet", "--allow-empty", "-m", "begin"]).unwrap();
        project.run(["worktree", "add", "--detach", "--quiet", at.to_str().unwrap()]).unwrap();
        project.run(["worktree", "lock", at.to_str().unwrap()]).unwrap();
        let notes = Notes { base: folder.path().join("base"), index: folder.path().join("index") };
        fs::write(&notes.base, "x").unwrap();
        let copy = Git::at(&at, &Arc::default());
        let (prefix, base) = (PathBuf::new(), String::new());
        let worktree = Worktree { project, copy, root, at: at.clone(), prefix, base, notes };
        let text = worktree.remove();
        assert!(text.contains(at.to_str().unwrap()) && text.contains("could not be removed (git: "), "{text}");
        assert!(!worktree.notes.base.exists());
        worktree.project.run(["worktree", "unlock", at.to_str().unwrap()]).unwrap();
        assert_eq!(worktree.remove(), "");
        assert!(!at.exists());
    }
}
