//! The mirrors of repositories, which are fetched once for all slots that need them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use haft_files::{Durability, LockFile};
use haft_sandbox::{GitProgram, GitReach};

use crate::workspace::{WorkspaceError, create_folder, path_to_str, remove_path};

/// The mirrors in one folder.
pub(crate) struct Mirrors {
    folder: PathBuf,
    /// The start of the newest successful fetch of each repository. The lock of an entry is held
    /// during a fetch.
    fetches: Mutex<HashMap<String, Arc<Mutex<Option<Instant>>>>>,
}

impl Mirrors {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            fetches: Mutex::default(),
        }
    }

    /// Creates or updates the mirror of a repository, and returns its path. If another slot begins
    /// a fetch while this one waits, its result is used. A lock keeps other processes from updating
    /// the mirror at the same time.
    pub(crate) fn update(
        &self,
        git: &GitProgram,
        url: &str,
        agent: Option<&Path>,
    ) -> Result<PathBuf, WorkspaceError> {
        let asked = Instant::now();
        let failed = |source| WorkspaceError::File {
            at: self.folder.clone(),
            source,
        };
        create_folder(&self.folder)?;
        let above = self.folder.canonicalize().map_err(failed)?;
        let name = blake3::hash(url.as_bytes()).to_hex();
        let at = above.join(format!("{}.git", &name[..32]));
        let entry = {
            let mut fetches = self.fetches.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(fetches.entry(url.to_owned()).or_default())
        };
        let mut newest = entry.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.is_some_and(|begun| begun >= asked) && at.join("HEAD").exists() {
            return Ok(at);
        }
        let lock = above.join(format!("{}.lock", &name[..32]));
        let _lock = LockFile::acquire(&lock).map_err(failed)?;
        let begun = Instant::now();
        fetch_mirror(git, url, agent, &at)?;
        *newest = Some(begun);
        Ok(at)
    }
}

fn fetch_mirror(
    git: &GitProgram,
    url: &str,
    agent: Option<&Path>,
    at: &Path,
) -> Result<(), WorkspaceError> {
    let dir = format!("--git-dir={}", path_to_str(at));
    if !at.join("HEAD").exists() {
        remove_path(at)?;
        create_folder(at)?;
        let init = [dir.as_str(), "init", "--quiet", "--bare", "--template="];
        git.run_in_own_folder(at, GitReach::Local, &init)
            .map_err(|source| WorkspaceError::Git {
                what: "git init".to_owned(),
                source,
            })?;
    }
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
        "+HEAD:refs/haft/head",
    ];
    git.run_in_own_folder(at, GitReach::Network { source: url, agent }, &fetch)
        .map_err(|source| WorkspaceError::Fetch {
            url: url.to_owned(),
            source,
        })?;
    // A clone checks out the `HEAD` of the mirror.
    let head = at.join("HEAD");
    let failed = |source| WorkspaceError::File {
        at: head.clone(),
        source,
    };
    if let Ok(commit) = fs::read(at.join("refs/haft/head")) {
        haft_files::replace_file(&head, &commit, Durability::Process).map_err(failed)
    } else {
        // git has packed the reference.
        let update = [
            dir.as_str(),
            "update-ref",
            "--no-deref",
            "HEAD",
            "refs/haft/head",
        ];
        let updated = git.run_in_own_folder(at, GitReach::Local, &update);
        updated.map(drop).map_err(|source| WorkspaceError::Git {
            what: "git update-ref".to_owned(),
            source,
        })
    }
}
