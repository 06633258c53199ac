//! A repository as haft looks at it: found by its name, seen without its configuration.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::{GitCall, GitError, GitProgram, quoted, text};

/// What of a repository's configuration says how files are stored: nothing in it can name a
/// program.
const KEPT: &[&str] = &[
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

/// What of a repository is borrowed, where it is there.
const SHARED: &[&str] = &["refs", "packed-refs", "reftable", "shallow", "info"];

/// git on one repository: with an index and a work tree of its choice.
#[derive(Clone, Debug)]
pub struct Git {
    program: GitProgram,
    real: Arc<RealRepository>,
    view: Arc<TempDir>,
    /// The work tree, and the index that goes with it.
    tree: PathBuf,
    index: PathBuf,
    writable: Vec<PathBuf>,
}

/// Where a repository lies.
#[derive(Debug)]
struct RealRepository {
    top: PathBuf,
    /// The folder of this work tree, and that which all its work trees share; one and the same in
    /// most repositories.
    dir: PathBuf,
    common: PathBuf,
}

impl Git {
    /// The repository around a project; what haft needs for it lies in a private folder in
    /// `scratch`. Nothing can be written with it.
    pub fn open(program: GitProgram, project: &Path, scratch: &Path) -> Result<Self, GitError> {
        let real = RealRepository::find(project)?;
        let at = |source| GitError::Prepare {
            at: scratch.to_owned(),
            source,
        };
        haft_files::create_folder(scratch).map_err(at)?;
        let scratch = scratch.canonicalize().map_err(at)?;
        let view = haft_files::temporary_folder(&scratch, "view-").map_err(at)?;
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
        let kept = git.settings()?;
        git.fill(&kept).map_err(|source| GitError::Prepare {
            at: git.view.path().to_owned(),
            source,
        })?;
        Ok(git)
    }

    /// The top of its work tree.
    pub fn top(&self) -> &Path {
        &self.real.top
    }

    /// The work tree it works on.
    pub fn tree(&self) -> &Path {
        &self.tree
    }

    /// The index of its work tree.
    pub fn index(&self) -> PathBuf {
        self.real.dir.join("index")
    }

    /// A private folder in which [`Git::writing`] may have its index.
    pub fn own_folder(&self) -> PathBuf {
        self.view.path().join("own")
    }

    /// The same for another work tree, with an index in [`Git::own_folder`], and objects can be
    /// added. The work tree can be written if it is another one than the user's.
    pub fn writing(&self, tree: &Path, index: &str) -> Result<Self, GitError> {
        let objects = self.real.plain("objects")?;
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

    /// What a command prints, or why it failed.
    pub fn run<S: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Vec<u8>, GitError> {
        self.call(arguments, None)
    }

    /// The same with these paths for it to read: a quoted line each.
    pub fn run_with<'a, S: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        paths: impl IntoIterator<Item = &'a OsStr>,
    ) -> Result<Vec<u8>, GitError> {
        self.call(arguments, Some(quoted(paths)))
    }

    /// The one line a command prints.
    pub fn line<S: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String, GitError> {
        let printed = self.run(arguments)?;
        Ok(String::from_utf8_lossy(&printed)
            .trim_end_matches('\n')
            .to_owned())
    }

    /// Those of these paths that a filter should go over (LFS, encryption): what git would store of
    /// them is not what is in the files.
    pub fn filtered(&self, paths: &[OsString]) -> Result<Vec<OsString>, GitError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let printed = self.run_with(
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

    /// Adds a linked work tree that holds no files yet. Its folder must be in this one.
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
            text(at)?,
            commit,
        ];
        self.in_place(add, within)
    }

    /// Removes a linked work tree with everything in it.
    pub fn remove_worktree(&self, at: &Path, within: &Path) -> Result<(), GitError> {
        self.in_place(["worktree", "remove", "--force", text(at)?], within)?;
        // git could not, from where it was; others may be in it.
        let _ = fs::remove_dir(self.real.common.join("worktrees"));
        Ok(())
    }

    /// Where the index of a linked work tree lies.
    pub fn index_of(&self, worktree: &Path) -> Result<PathBuf, GitError> {
        Ok(RealRepository::find(worktree)?.dir.join("index"))
    }

    /// In the real repository, whose list of work trees only git itself can change. No content is
    /// looked at, so no filter or driver is; what the configuration calls hooks is switched off
    /// by name.
    fn in_place<const N: usize>(
        &self,
        arguments: [&str; N],
        within: &Path,
    ) -> Result<(), GitError> {
        let mut environment = vec![("GIT_DIR", text(&self.real.common)?.to_owned())];
        let mut options = Vec::new();
        let names: Vec<_> = self.configuration()?.into_keys().collect();
        for hook in names
            .iter()
            .filter_map(|name| name.strip_prefix("hook.")?.rsplit_once('.'))
        {
            options.extend(["-c".to_owned(), format!("hook.{}.enabled=false", hook.0)]);
        }
        environment.push(("GIT_WORK_TREE", text(&self.real.top)?.to_owned()));
        let writable = vec![
            self.real.plain("worktrees")?,
            self.real.plain("objects")?,
            within.to_owned(),
        ];
        let arguments = options
            .iter()
            .map(String::as_str)
            .chain(arguments)
            .map(OsString::from)
            .collect();
        let cwd = text(&self.real.top)?;
        let call = GitCall {
            cwd,
            arguments,
            environment,
            readable: self.readable(),
            writable,
            ..GitCall::default()
        };
        self.program.run(&call).map(drop)
    }

    fn call<S: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: Option<String>,
    ) -> Result<Vec<u8>, GitError> {
        let environment = vec![
            ("GIT_DIR", text(self.view.path())?.to_owned()),
            ("GIT_WORK_TREE", text(&self.tree)?.to_owned()),
            ("GIT_INDEX_FILE", text(&self.index)?.to_owned()),
            (
                "GIT_OBJECT_DIRECTORY",
                text(&self.real.plain("objects")?)?.to_owned(),
            ),
        ];
        let arguments = arguments.into_iter().map(Into::into).collect();
        let cwd = text(&self.tree)?;
        let readable = self.readable();
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

    fn readable(&self) -> Vec<PathBuf> {
        let mut all = vec![
            self.real.top.clone(),
            self.real.dir.clone(),
            self.real.common.clone(),
        ];
        all.push(self.view.path().to_owned());
        all
    }

    /// What the repository configures, by name: read by git, obeyed by nobody.
    fn configuration(&self) -> Result<BTreeMap<String, String>, GitError> {
        let environment = vec![("GIT_DIR", text(&self.real.dir)?.to_owned())];
        let arguments = ["config", "--list", "-z"].map(OsString::from).to_vec();
        let cwd = text(&self.real.top)?;
        let readable = self.readable();
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

    /// The text of the view's own configuration.
    fn settings(&self) -> Result<String, GitError> {
        let all = self.configuration()?;
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
        let plain = |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let mut kept = "[core]\n\tbare = false\n".to_owned();
        for name in KEPT {
            if let (Some((section, key)), Some(value)) = (name.split_once('.'), all.get(*name))
                && plain(value)
            {
                kept.extend(["[", section, "]\n\t", key, " = ", value, "\n"]);
            }
        }
        Ok(kept)
    }

    fn fill(&self, settings: &str) -> io::Result<()> {
        let view = self.view.path();
        let real = &self.real;
        haft_files::create_new(&view.join("config"))?.write_all(settings.as_bytes())?;
        haft_files::create_new(&view.join("HEAD"))?.write_all(&fs::read(real.dir.join("HEAD"))?)?;
        for name in SHARED.iter().filter(|name| real.common.join(name).exists()) {
            symlink(real.common.join(name), view.join(name))?;
        }
        // Where the index is kept in two pieces, the large one lies beside it.
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
    /// The first folder from the project upwards that has a `.git`, which must belong to who runs
    /// haft, or to whom the project belongs.
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
            } else if let Some(found) = metadata.is_file().then(|| elsewhere(top, &at)).flatten() {
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

    /// A folder of the repository, which must be one and no link.
    fn plain(&self, name: &str) -> Result<PathBuf, GitError> {
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

/// Where a `.git` that is a file leads: to the repository of which this is a linked work tree, and
/// which knows it, or to one of the modules of the repository around it.
fn elsewhere(top: &Path, at: &Path) -> Option<(PathBuf, PathBuf)> {
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
