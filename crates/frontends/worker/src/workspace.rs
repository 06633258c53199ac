//! Creates the workspaces of tasks. Each run gets a fresh clone from a mirror of the repository
//! that the worker keeps, and its changes become a patch.
//!
//! Objects are copied, not linked, so a task cannot change the mirror through its clone. git runs
//! as everywhere in haft, without the repository's configuration.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use haft_files::{Durability, LockFile};
use haft_postgres::{KeptFile, KeptKind, QueuedTask};
use haft_sandbox::{Git, GitError, GitProgram, GitReach};

/// The id of git's empty tree, which exists in every repository. A task without a repository starts
/// from it.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

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
    #[error("git fetch {url}: {source}")]
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
}

/// Creates and removes the folders in which the tasks of a worker run.
pub struct Workspaces {
    /// The folder that contains the mirrors and workspaces. Only workers write to it.
    pub folder: PathBuf,
    /// The git program with which repositories are fetched and cloned.
    pub git: GitProgram,
    /// The path of the socket of the user's SSH agent, if there is one.
    pub agent: Option<PathBuf>,
}

/// The clone in which one task works.
#[derive(Debug)]
pub struct TaskWorkspace {
    /// The path of the clone.
    pub folder: PathBuf,
    /// The commit that the task started from.
    pub base: String,
    /// The source of the repository, as the task names it. `None` for a task without a repository.
    source: Option<String>,
    /// The mirror or bundle from which the repository was cloned.
    mirror: Option<PathBuf>,
}

impl Workspaces {
    /// Creates a fresh clone for a task. If an earlier run left a workspace behind, that is removed
    /// first.
    pub fn create_workspace(
        &self,
        task: &QueuedTask,
        bundle: Option<&[u8]>,
    ) -> Result<TaskWorkspace, WorkspaceError> {
        let above = self.folder.join("tasks").join(task.id.to_string());
        remove_path(&above)?;
        create_folder(&above)?;
        let above = above
            .canonicalize()
            .map_err(|source| WorkspaceError::File {
                at: above.clone(),
                source,
            })?;
        let folder = above.join("work");
        let source = task.request.repository.clone();
        let mirror = match (&source, bundle) {
            (None, _) => {
                self.run_git(
                    &above,
                    GitReach::Local,
                    "git init",
                    &["init", "--quiet", "--template=", path_to_str(&folder)],
                )?;
                return Ok(TaskWorkspace {
                    folder,
                    base: EMPTY_TREE.to_owned(),
                    source,
                    mirror: None,
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
            (Some(url), None) => self.update_mirror(url)?,
        };
        let from = path_to_str(&mirror).to_owned();
        let clone = [
            "clone",
            "--quiet",
            "--no-checkout",
            "--no-hardlinks",
            "--template=",
            "--",
            &from,
            path_to_str(&folder),
        ];
        self.run_git(
            &above,
            GitReach::Network {
                source: &from,
                agent: None,
            },
            "git clone",
            &clone,
        )?;
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
        })
    }

    /// Creates or updates the mirror of a repository. A lock prevents other processes from updating
    /// it at the same time.
    fn update_mirror(&self, url: &str) -> Result<PathBuf, WorkspaceError> {
        let above = self.folder.join("mirrors");
        create_folder(&above)?;
        let above = above
            .canonicalize()
            .map_err(|source| WorkspaceError::File {
                at: above.clone(),
                source,
            })?;
        let name = blake3::hash(url.as_bytes()).to_hex();
        let at = above.join(format!("{}.git", &name[..32]));
        let lock = above.join(format!("{}.lock", &name[..32]));
        let _lock = LockFile::acquire(&lock).map_err(|source| WorkspaceError::File {
            at: at.clone(),
            source,
        })?;
        let reach = GitReach::Network {
            source: url,
            agent: self.agent.as_deref().filter(|_| is_ssh(url)),
        };
        if !at.join("HEAD").exists() {
            remove_path(&at)?;
            create_folder(&at)?;
            let dir = format!("--git-dir={}", path_to_str(&at));
            self.run_git(
                &at,
                GitReach::Local,
                "git init",
                &[&dir, "init", "--quiet", "--bare", "--template="],
            )?;
        }
        let dir = format!("--git-dir={}", path_to_str(&at));
        let fetch = [
            dir.as_str(),
            "fetch",
            "--quiet",
            "--prune",
            "--force",
            "--",
            url,
            "+refs/heads/*:refs/heads/*",
            "+refs/tags/*:refs/tags/*",
        ];
        let failed = |source| WorkspaceError::Fetch {
            url: url.to_owned(),
            source,
        };
        self.git
            .run_in_own_folder(&at, reach, &fetch)
            .map_err(failed)?;
        let head = [
            dir.as_str(),
            "fetch",
            "--quiet",
            "--force",
            "--",
            url,
            "HEAD:refs/haft/head",
        ];
        self.git
            .run_in_own_folder(&at, reach, &head)
            .map_err(failed)?;
        self.run_git(
            &at,
            GitReach::Local,
            "git update-ref",
            &[&dir, "update-ref", "--no-deref", "HEAD", "refs/haft/head"],
        )?;
        Ok(at)
    }

    /// Returns the changes of a task as a patch for `git apply`. The patch is empty if nothing was
    /// changed.
    pub fn create_patch(&self, workspace: &TaskWorkspace) -> Result<Vec<u8>, WorkspaceError> {
        let what = |source| WorkspaceError::Git {
            what: "the patch".to_owned(),
            source,
        };
        let scratch = self.folder.join("views");
        let git = Git::open(self.git.clone(), &workspace.folder, &scratch).map_err(what)?;
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

    /// Commits a patch on top of the task's base commit, and pushes the commit to a branch of the
    /// repository. The commit is made in a new clone to which the task had no access.
    pub fn push_patch(
        &self,
        workspace: &TaskWorkspace,
        patch: &[u8],
        branch: &str,
    ) -> Result<(), WorkspaceError> {
        let (Some(url), Some(mirror)) = (&workspace.source, &workspace.mirror) else {
            return Ok(());
        };
        let above = workspace.folder.parent().unwrap_or(&workspace.folder);
        let folder = above.join("push");
        let change = above.join("push/.git/change.patch");
        let from = path_to_str(mirror).to_owned();
        let clone = [
            "clone",
            "--quiet",
            "--no-checkout",
            "--no-hardlinks",
            "--template=",
            "--",
            &from,
            path_to_str(&folder),
        ];
        self.run_git(
            above,
            GitReach::Network {
                source: &from,
                agent: None,
            },
            "git clone",
            &clone,
        )?;
        haft_files::replace_file(&change, patch, Durability::Process).map_err(|source| {
            WorkspaceError::File {
                at: change.clone(),
                source,
            }
        })?;
        let dir = format!("--git-dir={}/.git", path_to_str(&folder));
        let tree = format!("--work-tree={}", path_to_str(&folder));
        let run_in_clone = |what: &str, arguments: &[&str]| {
            let all: Vec<_> = [dir.as_str(), &tree]
                .into_iter()
                .chain(arguments.iter().copied())
                .collect();
            self.run_git(&folder, GitReach::Local, what, &all)
        };
        run_in_clone(
            "git checkout",
            &[
                "checkout",
                "--quiet",
                "--detach",
                "--end-of-options",
                &workspace.base,
                "--",
            ],
        )?;
        run_in_clone(
            "git apply",
            &["apply", "--index", "--binary", path_to_str(&change)],
        )?;
        run_in_clone(
            "git commit",
            &["commit", "--quiet", "--message", "Change made by haft"],
        )?;
        let target = format!("HEAD:refs/heads/{branch}");
        let push = [dir.as_str(), "push", "--quiet", "--", url, &target];
        let what = format!("git push {url} {branch}");
        if let Some(local) = local_path(url) {
            return self.run_git(
                local,
                GitReach::Network {
                    source: path_to_str(&folder),
                    agent: None,
                },
                &what,
                &push,
            );
        }
        let agent = self.agent.as_deref().filter(|_| is_ssh(url));
        self.run_git(
            &folder,
            GitReach::Network { source: url, agent },
            &what,
            &push,
        )
    }

    /// Removes the workspace of a task. If the removal fails, it is repeated when the task runs on
    /// this worker again.
    pub fn remove_workspace(&self, workspace: &TaskWorkspace) {
        if let Some(Err(error)) = workspace.folder.parent().map(remove_path) {
            tracing::warn!(%error, "the workspace of a task is still there");
        }
    }

    fn run_git(
        &self,
        folder: &Path,
        reach: GitReach<'_>,
        what: &str,
        arguments: &[&str],
    ) -> Result<(), WorkspaceError> {
        self.git
            .run_in_own_folder(folder, reach, arguments)
            .map_err(|source| WorkspaceError::Git {
                what: what.to_owned(),
                source,
            })
    }
}

impl TaskWorkspace {
    /// Restores the changes of earlier runs in the clone. Deletions are made first, beginning with
    /// the deepest path; then the changed files are written.
    pub fn restore_files(&self, kept: &[KeptFile]) -> Result<(), WorkspaceError> {
        for file in kept
            .iter()
            .rev()
            .filter(|file| file.kind == KeptKind::Absent)
        {
            remove_path(&self.resolve_path(file)?)?;
        }
        for file in kept.iter().filter(|file| file.kind != KeptKind::Absent) {
            let at = self.resolve_path(file)?;
            write_kept_file(file, &at).map_err(|source| WorkspaceError::File {
                at: file.path.clone(),
                source,
            })?;
        }
        Ok(())
    }

    /// Returns the path of a stored file in the clone. A path that leads outside the clone, whether
    /// directly or through links, is rejected.
    fn resolve_path(&self, file: &KeptFile) -> Result<PathBuf, WorkspaceError> {
        let outside = || WorkspaceError::Outside(file.path.clone());
        let plain = file
            .path
            .components()
            .all(|part| matches!(part, Component::Normal(name) if name != ".git"));
        let at = self.folder.join(&file.path);
        let near = at
            .ancestors()
            .skip(1)
            .find_map(|above| above.canonicalize().ok())
            .ok_or_else(outside)?;
        let top = self.folder.canonicalize().map_err(|_| outside())?;
        if plain && near.starts_with(top) {
            Ok(at)
        } else {
            Err(outside())
        }
    }
}

fn write_kept_file(file: &KeptFile, at: &Path) -> io::Result<()> {
    if let Some(above) = at.parent() {
        fs::create_dir_all(above)?;
    }
    let is_folder = at
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir());
    match file.kind {
        KeptKind::Absent => return Ok(()),
        KeptKind::Folder => {
            if !is_folder {
                fs::create_dir(at)?;
            }
        }
        KeptKind::File | KeptKind::Link if is_folder => fs::remove_dir_all(at)?,
        KeptKind::File | KeptKind::Link => drop(fs::remove_file(at)),
    }
    match file.kind {
        KeptKind::Link => {
            use std::os::unix::ffi::OsStrExt;
            symlink(std::ffi::OsStr::from_bytes(&file.content), at)
        }
        KeptKind::File => {
            fs::write(at, &file.content)?;
            fs::set_permissions(at, fs::Permissions::from_mode(file.mode & 0o777))
        }
        KeptKind::Folder | KeptKind::Absent => Ok(()),
    }
}

fn create_folder(folder: &Path) -> Result<(), WorkspaceError> {
    haft_files::create_folder(folder).map_err(|source| WorkspaceError::File {
        at: folder.to_owned(),
        source,
    })
}

/// Removes a file or a folder. Succeeds if it does not exist.
fn remove_path(at: &Path) -> Result<(), WorkspaceError> {
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
fn path_to_str(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

/// Returns the local folder that the source of a repository refers to, or `None` if the source is
/// on another machine.
fn local_path(source: &str) -> Option<&Path> {
    Some(Path::new(source.trim_start_matches("file://"))).filter(|path| path.is_absolute())
}

/// True if git would use `ssh` to connect to the source of a repository, because of its scheme or
/// because it has the form `host:path`.
fn is_ssh(source: &str) -> bool {
    match source.split_once("://") {
        Some((scheme, _)) => scheme.contains("ssh"),
        None => source
            .split('/')
            .next()
            .is_some_and(|first| first.contains(':')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_file(path: &str, kind: KeptKind, content: &str) -> KeptFile {
        KeptFile {
            path: path.into(),
            kind,
            mode: 0o755,
            content: content.as_bytes().to_vec(),
        }
    }

    fn workspace(folder: &Path) -> TaskWorkspace {
        TaskWorkspace {
            folder: folder.to_owned(),
            base: EMPTY_TREE.to_owned(),
            source: None,
            mirror: None,
        }
    }

    #[test]
    fn restore_files_applies_changes_to_a_fresh_clone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("gone/deep")).unwrap();
        fs::write(at("gone/deep/a"), "").unwrap();
        fs::write(at("was_file"), "").unwrap();
        fs::create_dir(at("was_folder")).unwrap();
        workspace(folder.path())
            .restore_files(&[
                kept_file("gone", KeptKind::Absent, ""),
                kept_file("gone/deep", KeptKind::Absent, ""),
                kept_file("gone/deep/a", KeptKind::Absent, ""),
                kept_file("link", KeptKind::Link, "was_file"),
                kept_file("new/tool", KeptKind::File, "x"),
                kept_file("was_file", KeptKind::File, "now"),
                kept_file("was_folder", KeptKind::File, "file now"),
            ])
            .unwrap();
        assert!(!at("gone").exists());
        assert_eq!(fs::read_to_string(at("link")).unwrap(), "now");
        assert_eq!(fs::read_to_string(at("was_folder")).unwrap(), "file now");
        assert_eq!(
            fs::metadata(at("new/tool")).unwrap().permissions().mode() & 0o777,
            0o755
        );
    }

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
    fn restore_files_rejects_paths_outside_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), folder.path().join("way")).unwrap();
        for path in [
            "../x",
            "/tmp/x",
            "way/x",
            "way/deep/x",
            ".git/config",
            "a/../../x",
        ] {
            for kind in [
                KeptKind::File,
                KeptKind::Link,
                KeptKind::Absent,
                KeptKind::Folder,
            ] {
                let refused = workspace(folder.path()).restore_files(&[kept_file(path, kind, "x")]);
                assert!(
                    matches!(refused, Err(WorkspaceError::Outside(_))),
                    "{path} {kind:?}"
                );
            }
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
