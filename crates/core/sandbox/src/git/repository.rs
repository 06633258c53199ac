//! A repository as haft sees it: found by its name, used without its configuration.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::{GitCall, GitError, GitProgram, path_text, quote_paths};

/// Settings that are copied from a repository's configuration into the view. They describe how
/// files are stored and cannot name a program.
const COPIED_SETTINGS: &[&str] = &[
    "core.repositoryformatversion",
    "core.filemode",
    "core.ignorecase",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "extensions.objectformat",
    "extensions.refstorage",
];

/// The entries of a repository that become links in the view, if they exist.
const LINKED_ENTRIES: &[&str] = &["refs", "packed-refs", "reftable", "shallow", "info"];

/// Runs git commands in one repository, with a selected index and work tree.
#[derive(Clone, Debug)]
pub struct Git {
    program: GitProgram,
    real: Arc<RealRepository>,
    view: Arc<TempDir>,
    /// The work tree that commands use.
    tree: PathBuf,
    /// The index that belongs to the work tree.
    index: PathBuf,
    writable: Vec<PathBuf>,
}

/// The paths of a repository.
#[derive(Debug)]
struct RealRepository {
    top: PathBuf,
    /// The `.git` folder of the work tree at `top`.
    dir: PathBuf,
    /// The folder that all work trees of the repository share; equal to `dir` in most repositories.
    common: PathBuf,
}

impl Git {
    /// Opens the repository that contains `project`, for reading. The repository's view is created
    /// in a private folder in `scratch`.
    pub fn open(program: GitProgram, project: &Path, scratch: &Path) -> Result<Self, GitError> {
        let real = RealRepository::find(project)?;
        let at = |source| GitError::Prepare {
            at: scratch.to_owned(),
            source,
        };
        haft_files::create_folder(scratch).map_err(at)?;
        let scratch = scratch.canonicalize().map_err(at)?;
        let view = haft_files::create_temporary_folder(&scratch, "view-").map_err(at)?;
        let tree = real.top.clone();
        let index = real.dir.join("index");
        let git = Self {
            program,
            real: Arc::new(real),
            view: Arc::new(view),
            tree,
            index,
            writable: Vec::new(),
        };
        let kept = git.build_view_configuration()?;
        git.fill_view(&kept).map_err(|source| GitError::Prepare {
            at: git.view.path().to_owned(),
            source,
        })?;
        Ok(git)
    }

    /// Returns the top folder of the repository's work tree.
    pub fn top(&self) -> &Path {
        &self.real.top
    }

    /// Returns the work tree that commands use.
    pub fn work_tree(&self) -> &Path {
        &self.tree
    }

    /// Returns the path of the index of the repository's work tree.
    pub fn index_path(&self) -> PathBuf {
        self.real.dir.join("index")
    }

    /// Returns the private folder for the indexes that [`Git::for_writing`] uses.
    pub fn own_folder(&self) -> PathBuf {
        self.view.path().join("own")
    }

    /// Returns a copy that works on the work tree `tree` with an index in [`Git::own_folder`] and
    /// that can add objects. The work tree is writable unless it is the user's own.
    pub fn for_writing(&self, tree: &Path, index: &str) -> Result<Self, GitError> {
        let objects = self.real.real_folder("objects")?;
        let mut writable = vec![objects, self.own_folder()];
        if tree != self.real.top {
            writable.push(tree.to_owned());
        }
        Ok(Self {
            tree: tree.to_owned(),
            index: self.own_folder().join(index),
            writable,
            ..self.clone()
        })
    }

    /// Runs a git command and returns its output.
    pub fn run<S: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Vec<u8>, GitError> {
        self.run_in_view(arguments, None)
    }

    /// Like [`Git::run`], but writes `paths` to the command's input, quoted, one per line.
    pub fn run_with_paths<'a, S: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        paths: impl IntoIterator<Item = &'a OsStr>,
    ) -> Result<Vec<u8>, GitError> {
        self.run_in_view(arguments, Some(quote_paths(paths)))
    }

    /// Runs a git command and returns its output as one line of text.
    pub fn run_for_line<S: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String, GitError> {
        let printed = self.run(arguments)?;
        Ok(String::from_utf8_lossy(&printed)
            .trim_end_matches('\n')
            .to_owned())
    }

    /// Returns the paths in `paths` for which a filter, such as LFS or encryption, is configured.
    /// For such a path, git would store other bytes than the file contains.
    pub fn paths_with_filters(&self, paths: &[OsString]) -> Result<Vec<OsString>, GitError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let printed = self.run_with_paths(
            ["check-attr", "--stdin", "filter"],
            paths.iter().map(OsString::as_os_str),
        )?;
        let values = printed
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let filtered = values.zip(paths).filter(|(line, _)| {
            !line.ends_with(b": filter: unspecified") && !line.ends_with(b": filter: unset")
        });
        Ok(filtered.map(|(_, path)| path.clone()).collect())
    }

    /// Adds a linked work tree of `commit` at the path `at`, which must be inside `within`, without
    /// checking out any files.
    pub fn add_worktree(&self, at: &Path, commit: &str, within: &Path) -> Result<(), GitError> {
        let folder = self.real.common.join("worktrees");
        if let Err(source) = fs::create_dir(&folder)
            && source.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(GitError::Prepare { at: folder, source });
        }
        let add = [
            "worktree",
            "add",
            "--no-checkout",
            "--detach",
            "--force",
            "--quiet",
            path_text(at)?,
            commit,
        ];
        self.run_in_real_repository(add, within)
    }

    /// Removes a linked work tree and all its content.
    pub fn remove_worktree(&self, at: &Path, within: &Path) -> Result<(), GitError> {
        self.run_in_real_repository(["worktree", "remove", "--force", path_text(at)?], within)?;
        // Git cannot remove this folder from its working folder. If it contains other work trees,
        // this fails.
        let _ = fs::remove_dir(self.real.common.join("worktrees"));
        Ok(())
    }

    /// Returns the path of the index of a linked work tree.
    pub fn worktree_index_path(&self, worktree: &Path) -> Result<PathBuf, GitError> {
        Ok(RealRepository::find(worktree)?.dir.join("index"))
    }

    /// Runs a git command in the repository itself instead of the view, because only git can change
    /// the repository's list of work trees. No file content is read, so no filter or driver runs;
    /// configured hooks are disabled by name.
    fn run_in_real_repository<const N: usize>(
        &self,
        arguments: [&str; N],
        within: &Path,
    ) -> Result<(), GitError> {
        let mut environment = vec![("GIT_DIR", path_text(&self.real.common)?.to_owned())];
        let mut options = Vec::new();
        let names: Vec<_> = self.read_configuration()?.into_keys().collect();
        for hook in names
            .iter()
            .filter_map(|name| name.strip_prefix("hook.")?.rsplit_once('.'))
        {
            options.extend(["-c".to_owned(), format!("hook.{}.enabled=false", hook.0)]);
        }
        environment.push(("GIT_WORK_TREE", path_text(&self.real.top)?.to_owned()));
        let writable = vec![
            self.real.real_folder("worktrees")?,
            self.real.real_folder("objects")?,
            within.to_owned(),
        ];
        let arguments = options
            .iter()
            .map(String::as_str)
            .chain(arguments)
            .map(OsString::from)
            .collect();
        let cwd = path_text(&self.real.top)?;
        let call = GitCall {
            cwd,
            arguments,
            environment,
            readable: self.readable_folders(),
            writable,
            ..GitCall::default()
        };
        self.program.run(&call).map(drop)
    }

    fn run_in_view<S: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: Option<String>,
    ) -> Result<Vec<u8>, GitError> {
        let environment = vec![
            ("GIT_DIR", path_text(self.view.path())?.to_owned()),
            ("GIT_WORK_TREE", path_text(&self.tree)?.to_owned()),
            ("GIT_INDEX_FILE", path_text(&self.index)?.to_owned()),
            (
                "GIT_OBJECT_DIRECTORY",
                path_text(&self.real.real_folder("objects")?)?.to_owned(),
            ),
        ];
        let arguments = arguments.into_iter().map(Into::into).collect();
        let cwd = path_text(&self.tree)?;
        let readable = self.readable_folders();
        let writable = self.writable.clone();
        self.program.run(&GitCall {
            cwd,
            arguments,
            environment,
            input,
            readable,
            writable,
            ..GitCall::default()
        })
    }

    fn readable_folders(&self) -> Vec<PathBuf> {
        let mut all = vec![
            self.real.top.clone(),
            self.real.dir.clone(),
            self.real.common.clone(),
        ];
        all.push(self.view.path().to_owned());
        all
    }

    /// Returns the repository's settings by name. Git only lists them and does not apply them.
    fn read_configuration(&self) -> Result<BTreeMap<String, String>, GitError> {
        let environment = vec![("GIT_DIR", path_text(&self.real.dir)?.to_owned())];
        let arguments = ["config", "--list", "-z"].map(OsString::from).to_vec();
        let cwd = path_text(&self.real.top)?;
        let readable = self.readable_folders();
        let printed = self.program.run(&GitCall {
            cwd,
            arguments,
            environment,
            readable,
            ..GitCall::default()
        })?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let entry = |entry: &str| {
            entry
                .split_once('\n')
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        Ok(printed.split('\0').filter_map(entry).collect())
    }

    /// Returns the text of the view's configuration.
    fn build_view_configuration(&self) -> Result<String, GitError> {
        let all = self.read_configuration()?;
        let linked = self.real.dir != self.real.common;
        if linked
            && all
                .get("extensions.refstorage")
                .is_some_and(|kind| kind != "files")
        {
            let why =
                "its refs are not kept in files, which haft cannot read from a linked work tree"
                    .to_owned();
            return Err(GitError::Refused {
                at: self.real.dir.clone(),
                why,
            });
        }
        let mut kept = "[core]\n\tbare = false\n".to_owned();
        for name in COPIED_SETTINGS {
            if let (Some((section, key)), Some(value)) = (name.split_once('.'), all.get(*name))
                && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
            {
                kept.extend(["[", section, "]\n\t", key, " = ", value, "\n"]);
            }
        }
        Ok(kept)
    }

    fn fill_view(&self, settings: &str) -> io::Result<()> {
        let view = self.view.path();
        let real = &self.real;
        haft_files::create_new(&view.join("config"))?.write_all(settings.as_bytes())?;
        haft_files::create_new(&view.join("HEAD"))?.write_all(&fs::read(real.dir.join("HEAD"))?)?;
        for name in LINKED_ENTRIES
            .iter()
            .filter(|name| real.common.join(name).exists())
        {
            symlink(real.common.join(name), view.join(name))?;
        }
        // If the index is split in two files, the large one lies beside the small one.
        for entry in fs::read_dir(&real.dir)? {
            let name = entry?.file_name();
            if name.as_bytes().starts_with(b"sharedindex.") {
                symlink(real.dir.join(&name), view.join(&name))?;
            }
        }
        haft_files::create_new_folder(&self.own_folder())
    }
}

impl RealRepository {
    /// Finds the nearest folder that contains a `.git`, from `project` upwards. The `.git` must
    /// belong to the user who runs haft or to the owner of the project.
    fn find(project: &Path) -> Result<Self, GitError> {
        let owner = project.metadata().map_or(0, |metadata| metadata.uid());
        for top in project.ancestors() {
            let at = top.join(".git");
            let Ok(metadata) = at.symlink_metadata() else {
                continue;
            };
            let refused = |why: &str| {
                Err(GitError::Refused {
                    at: at.clone(),
                    why: why.to_owned(),
                })
            };
            if metadata.uid() != owner && metadata.uid() != rustix::process::geteuid().as_raw() {
                return refused("it belongs to another user");
            }
            let (dir, common) = if metadata.is_dir() {
                (at.clone(), at.clone())
            } else if let Some(found) = metadata
                .is_file()
                .then(|| resolve_git_file(top, &at))
                .flatten()
            {
                found
            } else {
                return refused(
                    "it leads to a repository that does not name this folder as one of its own",
                );
            };
            if dir.join("HEAD").is_file() {
                return Ok(Self {
                    top: top.to_owned(),
                    dir,
                    common,
                });
            }
        }
        Err(GitError::NoRepository)
    }

    /// Returns the path of a folder of the repository, which must not be a link.
    fn real_folder(&self, name: &str) -> Result<PathBuf, GitError> {
        let at = self.common.join(name);
        if at
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_dir())
        {
            return Ok(at);
        }
        Err(GitError::Refused {
            at,
            why: "it is not a folder".to_owned(),
        })
    }
}

/// Returns the `.git` folder to which the `.git` file at `at` refers, and the folder that its work
/// trees share. The repository must be one that lists `top` as a linked work tree, or one of the
/// modules of an enclosing repository.
fn resolve_git_file(top: &Path, at: &Path) -> Option<(PathBuf, PathBuf)> {
    let named = |path: &Path| {
        let bytes = fs::metadata(path)
            .ok()
            .filter(|file| file.len() < 8192)
            .and_then(|_| fs::read(path).ok())?;
        Some(PathBuf::from(OsStr::from_bytes(bytes.trim_ascii_end())))
    };
    let line = named(at)?;
    let target = OsStr::from_bytes(line.as_os_str().as_bytes().strip_prefix(b"gitdir: ")?);
    let dir = top.join(target).canonicalize().ok()?;
    let folder = dir.parent()?;
    if folder.file_name() == Some(OsStr::new("worktrees")) {
        let back = dir.join(named(&dir.join("gitdir"))?).canonicalize().ok()?;
        return (back == at.canonicalize().ok()?)
            .then_some((dir.clone(), folder.parent()?.to_owned()));
    }
    let around = top
        .ancestors()
        .skip(1)
        .any(|above| dir.starts_with(above.join(".git/modules")));
    around.then_some((dir.clone(), dir))
}
