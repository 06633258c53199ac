//! Creates the workspaces of tasks. Each run gets a fresh clone from a mirror of the repository
//! that the worker keeps, and its changes become a patch.
//!
//! Objects are copied, not linked, so a task cannot change the mirror through its clone. git runs
//! as everywhere in haft, without the repository's configuration.
//!
//! Invariant: a clone belongs to the process that has its lock. Several workers can use one folder.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use haft_files::Durability;
use haft_postgres::{QueuedTask, hide_address_password};
use haft_sandbox::{Git, GitError, GitProgram, GitReach};

use crate::clone_lock::CloneLock;
use crate::mirrors::Mirrors;

/// The id of git's empty tree, which exists in every repository. A task without a repository starts
/// from it.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// The size of the file that is written to check the disk of a host, in bytes.
const PROBE_BYTES: usize = 1 << 20;

/// The reason why an operation on a task's workspace or its patch failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("{what}: {source}")]
    Git {
        /// The git command or other operation that failed.
        what: String,
        source: GitError,
    },
    /// A repository could not be fetched.
    #[error("git fetch {}: {source}", hide_address_password(.url))]
    Fetch {
        /// The URL of the repository.
        url: String,
        source: GitError,
    },
    /// A file could not be read or written.
    #[error("`{}`: {source}", .at.display())]
    File {
        /// The path of the file.
        at: PathBuf,
        source: io::Error,
    },
    /// A file stored by an earlier run has a path outside the workspace.
    #[error("`{}` does not lie in the workspace", .0.display())]
    Outside(PathBuf),
}

impl WorkspaceError {
    /// True if another attempt may succeed, because a server may be unreachable or a disk may be
    /// full. A missing local repository or commit is permanent.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Fetch { url, .. } => local_path(url).is_none(),
            Self::File { .. } => true,
            Self::Git { .. } | Self::Outside(_) => false,
        }
    }

    /// True if the server refused a push, as opposed to being unreachable.
    pub fn is_refused_push(&self) -> bool {
        match self {
            Self::Git {
                source: GitError::Failed(reason),
                ..
            } => reason.contains("rejected]"),
            Self::Git { .. } | Self::Fetch { .. } | Self::File { .. } | Self::Outside(_) => false,
        }
    }
}

/// Finds git and sets up its sandbox. Called again if the sandbox no longer works, for example
/// because somebody has removed its folder.
pub type BuildGit = Box<dyn Fn() -> Result<GitProgram, String> + Send + Sync>;

/// Creates and removes the folders in which the tasks of a worker run.
pub struct Workspaces {
    /// The folder that contains the mirrors and workspaces. Only workers write to it.
    folder: PathBuf,
    /// The git program with which repositories are fetched and cloned.
    git: Mutex<GitProgram>,
    build_git: BuildGit,
    /// The path of the socket of the user's SSH agent, if there is one.
    pub(crate) agent: Option<PathBuf>,
    mirrors: Mirrors,
}

/// The clone in which one task works.
#[derive(Debug)]
pub struct TaskWorkspace {
    /// The path of the clone.
    pub folder: PathBuf,
    /// The commit that the task started from.
    pub base: String,
    /// The source of the repository, as the task names it. `None` for a task without a repository.
    pub(crate) source: Option<String>,
    /// The mirror or bundle from which the repository was cloned.
    pub(crate) mirror: Option<PathBuf>,
    lock: Option<CloneLock>,
}

impl Workspaces {
    /// Creates the manager of the workspaces in `folder`.
    pub fn new(
        folder: PathBuf,
        build_git: BuildGit,
        agent: Option<PathBuf>,
    ) -> Result<Self, String> {
        let git = Mutex::new(build_git()?);
        Ok(Self {
            mirrors: Mirrors::new(folder.join("mirrors")),
            folder,
            git,
            build_git,
            agent,
        })
    }

    pub(crate) fn git(&self) -> GitProgram {
        self.git
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn tasks_folder(&self) -> PathBuf {
        self.folder.join("tasks")
    }

    /// Removes the clones of workers that were killed, and returns their paths.
    pub fn remove_abandoned(&self) -> Vec<PathBuf> {
        let mut removed = Vec::new();
        for lock in CloneLock::take_abandoned(&self.tasks_folder()) {
            removed.push(lock.folder().join("work"));
            if let Err(error) = lock.remove_folder() {
                tracing::warn!(%error, "the workspace of a killed worker is still there");
            }
        }
        removed
    }

    /// Checks that this host can run tasks: that its disk has room, and that git runs in its
    /// sandbox. A sandbox that does not work is set up again.
    pub fn check_host(&self) -> Result<(), WorkspaceError> {
        let lock = CloneLock::acquire(&self.tasks_folder(), &["probe".to_owned()])?;
        let checked = self.probe_host(lock.folder());
        lock.remove_folder()?;
        checked
    }

    fn probe_host(&self, folder: &Path) -> Result<(), WorkspaceError> {
        let at = folder.join("disk");
        let failed = |source| WorkspaceError::File {
            at: at.clone(),
            source,
        };
        let mut file = fs::File::create(&at).map_err(failed)?;
        file.write_all(&vec![1; PROBE_BYTES]).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        let init = |name: &str| {
            let repository = folder.join(name);
            let arguments = ["init", "--quiet", "--template=", path_to_str(&repository)];
            self.run_git(folder, GitReach::Local, "git init", &arguments)
        };
        if init("first").is_ok() {
            return Ok(());
        }
        if let Ok(git) = (self.build_git)() {
            *self.git.lock().unwrap_or_else(PoisonError::into_inner) = git;
        }
        init("second")
    }

    /// Creates a fresh clone for a task.
    ///
    /// The clone's path contains only the number of the task, because the conversation names it,
    /// and a worker that continues the task should find the same path. If another run still has
    /// the lock of that folder – a worker that hangs, or another run in this process – the path
    /// contains the epoch, too.
    pub fn create_workspace(
        &self,
        task: &QueuedTask,
        bundle: Option<&[u8]>,
    ) -> Result<TaskWorkspace, WorkspaceError> {
        let names = [task.id.to_string(), format!("{}-{}", task.id, task.epoch)];
        let lock = CloneLock::acquire(&self.tasks_folder(), &names)?;
        match self.fill_workspace(task, bundle, lock.folder()) {
            Ok(workspace) => Ok(TaskWorkspace {
                lock: Some(lock),
                ..workspace
            }),
            Err(error) => {
                drop(lock.remove_folder());
                Err(error)
            }
        }
    }

    fn fill_workspace(
        &self,
        task: &QueuedTask,
        bundle: Option<&[u8]>,
        above: &Path,
    ) -> Result<TaskWorkspace, WorkspaceError> {
        let folder = above.join("work");
        let source = task.request.repository.clone();
        let mirror = match (&source, bundle) {
            (None, _) => {
                self.run_git(
                    above,
                    GitReach::Local,
                    "git init",
                    &["init", "--quiet", "--template=", path_to_str(&folder)],
                )?;
                return Ok(TaskWorkspace {
                    folder,
                    base: EMPTY_TREE.to_owned(),
                    source,
                    mirror: None,
                    lock: None,
                });
            }
            (Some(_), Some(content)) => {
                let at = above.join("repository.bundle");
                haft_files::replace_file(&at, content, Durability::Process).map_err(|source| {
                    WorkspaceError::File {
                        at: at.clone(),
                        source,
                    }
                })?;
                at
            }
            (Some(url), None) => {
                let agent = self.agent.as_deref().filter(|_| is_ssh(url));
                self.mirrors.update(&self.git(), url, agent)?
            }
        };
        self.clone_without_checkout(above, &mirror, &folder)?;
        let commit = task
            .base
            .as_deref()
            .or(task.request.commit.as_deref())
            .unwrap_or("HEAD");
        let dir = format!("--git-dir={}/.git", path_to_str(&folder));
        let tree = format!("--work-tree={}", path_to_str(&folder));
        let checkout = [
            dir.as_str(),
            &tree,
            "checkout",
            "--quiet",
            "--detach",
            "--end-of-options",
            commit,
            "--",
        ];
        self.run_git(
            &folder,
            GitReach::Local,
            &format!("git checkout {commit}"),
            &checkout,
        )?;
        let head = folder.join(".git/HEAD");
        let base = fs::read_to_string(&head)
            .map_err(|source| WorkspaceError::File { at: head, source })?;
        Ok(TaskWorkspace {
            folder,
            base: base.trim().to_owned(),
            source,
            mirror: Some(mirror),
            lock: None,
        })
    }

    pub(crate) fn clone_without_checkout(
        &self,
        above: &Path,
        mirror: &Path,
        folder: &Path,
    ) -> Result<(), WorkspaceError> {
        let from = path_to_str(mirror).to_owned();
        let clone = [
            "clone",
            "--quiet",
            "--no-checkout",
            "--no-hardlinks",
            "--template=",
            "--",
            &from,
            path_to_str(folder),
        ];
        let reach = GitReach::Network {
            source: &from,
            agent: None,
        };
        self.run_git(above, reach, "git clone", &clone)
    }

    /// Returns the changes of a task as a patch for `git apply`. The patch is empty if nothing was
    /// changed.
    pub fn create_patch(&self, workspace: &TaskWorkspace) -> Result<Vec<u8>, WorkspaceError> {
        let what = |source| WorkspaceError::Git {
            what: "the patch".to_owned(),
            source,
        };
        let scratch = self.folder.join("views");
        let git = Git::open(self.git(), &workspace.folder, &scratch).map_err(what)?;
        let git = git.for_writing(&workspace.folder, "index").map_err(what)?;
        git.run(["read-tree", &workspace.base]).map_err(what)?;
        git.run(["add", "--all", "--", "."]).map_err(what)?;
        let diff = [
            "diff",
            "--cached",
            "--binary",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            &workspace.base,
        ];
        git.run(diff).map_err(what)
    }

    /// Removes the workspace of a task. If the removal fails, it is repeated when a worker starts.
    pub fn remove_workspace(&self, workspace: TaskWorkspace) {
        let removed = workspace.lock.map(CloneLock::remove_folder);
        if let Some(Err(error)) = removed {
            tracing::warn!(%error, "the workspace of a task is still there");
        }
    }

    pub(crate) fn run_git(
        &self,
        folder: &Path,
        reach: GitReach<'_>,
        what: &str,
        arguments: &[&str],
    ) -> Result<(), WorkspaceError> {
        self.read_git(folder, reach, what, arguments).map(drop)
    }

    pub(crate) fn read_git(
        &self,
        folder: &Path,
        reach: GitReach<'_>,
        what: &str,
        arguments: &[&str],
    ) -> Result<String, WorkspaceError> {
        let printed = self.git().run_in_own_folder(folder, reach, arguments);
        printed
            .map(|printed| String::from_utf8_lossy(&printed).into_owned())
            .map_err(|source| WorkspaceError::Git {
                what: what.to_owned(),
                source,
            })
    }
}

pub(crate) fn create_folder(folder: &Path) -> Result<(), WorkspaceError> {
    haft_files::create_folder(folder).map_err(|source| WorkspaceError::File {
        at: folder.to_owned(),
        source,
    })
}

/// Removes a file or a folder. Succeeds if it does not exist.
pub(crate) fn remove_path(at: &Path) -> Result<(), WorkspaceError> {
    let removed = match at.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(at),
        Ok(_) => fs::remove_file(at),
        Err(_) => Ok(()),
    };
    removed.map_err(|source| WorkspaceError::File {
        at: at.to_owned(),
        source,
    })
}

/// Returns a path of the worker as text. Such paths are always valid UTF-8, because the worker's
/// folder was given as text, and only numbers and hashes are appended to it.
pub(crate) fn path_to_str(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

/// Returns the local folder that the source of a repository refers to, or `None` if the source is
/// on another machine.
pub(crate) fn local_path(source: &str) -> Option<&Path> {
    Some(Path::new(source.trim_start_matches("file://"))).filter(|path| path.is_absolute())
}

/// True if git would use `ssh` to connect to the source of a repository, because of its scheme or
/// because it has the form `host:path`.
pub(crate) fn is_ssh(source: &str) -> bool {
    match source.split_once("://") {
        Some((scheme, _)) => scheme.contains("ssh"),
        None => source
            .split('/')
            .next()
            .is_some_and(|first| first.contains(':')),
    }
}

impl TaskWorkspace {
    #[cfg(test)]
    pub(crate) fn for_folder(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            base: EMPTY_TREE.to_owned(),
            source: None,
            mirror: None,
            lock: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_transient_for_remote_fetches_and_full_disks() {
        let fetch = |url: &str| WorkspaceError::Fetch {
            url: url.to_owned(),
            source: GitError::NoRepository,
        };
        for url in [
            "https://host/x.git",
            "ssh://host/x",
            "host:x.git",
            "git@host:x.git",
        ] {
            assert!(fetch(url).is_transient(), "{url}");
        }
        for url in ["/srv/x.git", "file:///srv/x.git"] {
            assert!(!fetch(url).is_transient(), "{url}");
        }
        assert!(
            WorkspaceError::File {
                at: PathBuf::new(),
                source: io::ErrorKind::StorageFull.into()
            }
            .is_transient()
        );
        assert!(!WorkspaceError::Outside(PathBuf::new()).is_transient());
    }

    #[test]
    fn is_refused_push_is_false_for_unreachable_servers() {
        let push = |reason: &str| WorkspaceError::Git {
            what: "git push".to_owned(),
            source: GitError::Failed(reason.to_owned()),
        };
        assert!(
            push("error: failed to push some refs ([rejected] a -> a (fetch first))")
                .is_refused_push()
        );
        assert!(
            push("error: failed (no; [remote rejected] a -> a (hook declined))").is_refused_push()
        );
        assert!(!push("Could not resolve host: git.example.org").is_refused_push());
    }
}
