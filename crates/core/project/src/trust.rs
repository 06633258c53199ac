//! Which folders their user trusts, and what they held then.
//!
//! The list is a file of the user's own, never of a project. An entry is bound to the real path of
//! a folder and to the hash of everything in it that would run: a change of any of it takes the
//! trust back until the user gives it again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use haft_files::Durability;
use haft_types::{ContentHash, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Footprint;

/// What is looked at when a folder is trusted. Since 2 the files that hooks and servers name are.
const EDITION: u32 = 2;

/// The largest list of trusted folders that is read.
const MAX_LIST_BYTES: u64 = 64 << 20;

const HEADING: &str =
    "# Folders you trust, written by `haft trust`. Remove an entry to take the trust back.\n\n";

/// Whether a folder is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustState {
    /// It is.
    Trusted,
    /// Nobody said so.
    Untrusted,
    /// It was, but what would run is not what it was.
    Changed {
        /// The files that are new, gone or different.
        files: Vec<String>,
    },
    /// It was, by a version that did not look at all that would run.
    Outdated {
        /// The files that are new, gone or different since.
        files: Vec<String>,
    },
}

impl TrustState {
    /// Whether what the folder holds may be followed and run.
    pub fn is_trusted(&self) -> bool {
        match self {
            Self::Trusted => true,
            Self::Untrusted | Self::Changed { .. } | Self::Outdated { .. } => false,
        }
    }
}

/// The list could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It is not what haft writes.
    #[error("{}: {problem}; mend it or remove it (no folder is trusted then)", .path.display())]
    Unreadable {
        /// The list.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The disk refused.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The list or its folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not everything that would run could be looked at.
    #[error(
        "{} cannot be trusted: not everything that would run could be looked at (a link to a folder, an unreadable file, or too many files under `.haft` or `.claude`)", .path.display()
    )]
    NotWhole {
        /// The folder.
        path: PathBuf,
    },
}

/// The trusted folders of one user.
#[derive(Clone, Debug)]
pub struct TrustList {
    path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    #[serde(default)]
    folder: Vec<TrustRecord>,
}

/// What was found in a folder when it was trusted, and what was given to its servers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    path: PathBuf,
    trusted_at: Timestamp,
    #[serde(default)]
    edition: u32,
    /// The files that would run.
    #[serde(default)]
    pub runs: BTreeMap<String, ContentHash>,
    /// What was given to servers, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, ServerGrant>,
}

/// What a server of a project asks for beside the project and what commands have, or was given when
/// the folder was trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerGrant {
    /// Hosts it may reach, as in `[sandbox] network`.
    pub network: Vec<String>,
    /// Folders it may write, as in `[sandbox] writable`.
    pub writable: Vec<PathBuf>,
}

impl TrustList {
    /// The list in this file, which need not be there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// How a folder stands. `root` is its real path.
    pub fn state(&self, root: &Path) -> Result<TrustState, TrustError> {
        let stored = self.read()?;
        let Some(entry) = stored.folder.iter().find(|entry| entry.path == root) else {
            return Ok(TrustState::Untrusted);
        };
        let now = Footprint::of(root);
        let mut files = now.changed_since(&entry.runs);
        if !now.is_whole() {
            files.push("(something that could not be looked at)".to_owned());
        }
        let is_known = files.iter().any(|name| entry.runs.contains_key(name));
        Ok(
            match (files.is_empty(), entry.edition < EDITION && !is_known) {
                (true, _) => TrustState::Trusted,
                (false, true) => TrustState::Outdated { files },
                (false, false) => TrustState::Changed { files },
            },
        )
    }

    /// What is known of a folder since it was trusted; nothing of one that was not.
    pub fn record(&self, root: &Path) -> Result<TrustRecord, TrustError> {
        Ok(self
            .read()?
            .folder
            .into_iter()
            .find(|entry| entry.path == root)
            .unwrap_or_default())
    }

    /// Trusts a folder as it is now, and gives its servers no more than they were given before.
    /// `root` is its real path.
    pub fn trust(&self, root: &Path, now: Timestamp) -> Result<Footprint, TrustError> {
        self.trust_and_grant(root, now, self.record(root)?.servers)
    }

    /// The same, and gives this to its servers.
    pub fn trust_and_grant(
        &self,
        root: &Path,
        now: Timestamp,
        servers: BTreeMap<String, ServerGrant>,
    ) -> Result<Footprint, TrustError> {
        let footprint = Footprint::of(root);
        if !footprint.is_whole() {
            return Err(TrustError::NotWhole {
                path: root.to_owned(),
            });
        }
        let mut stored = self.read()?;
        stored.folder.retain(|entry| entry.path != root);
        let path = root.to_owned();
        let runs = footprint.files().clone();
        stored.folder.push(TrustRecord {
            path,
            trusted_at: now,
            edition: EDITION,
            runs,
            servers,
        });
        self.write(&stored)?;
        Ok(footprint)
    }

    /// Takes the trust back and says whether there was any.
    pub fn revoke(&self, root: &Path) -> Result<bool, TrustError> {
        let mut stored = self.read()?;
        let before = stored.folder.len();
        stored.folder.retain(|entry| entry.path != root);
        let had = stored.folder.len() != before;
        if had {
            self.write(&stored)?;
        }
        Ok(had)
    }

    fn read(&self) -> Result<TrustFile, TrustError> {
        match haft_files::read_text(&self.path, MAX_LIST_BYTES) {
            Ok(text) => toml::from_str(&text).map_err(|error| TrustError::Unreadable {
                path: self.path.clone(),
                problem: error.message().replace('\n', " "),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TrustFile::default()),
            Err(source) => Err(TrustError::Io {
                doing: "read",
                path: self.path.clone(),
                source,
            }),
        }
    }

    fn write(&self, stored: &TrustFile) -> Result<(), TrustError> {
        let fail = |source| TrustError::Io {
            doing: "write",
            path: self.path.clone(),
            source,
        };
        let text = toml::to_string(stored).map_err(|error| fail(io::Error::other(error)))?;
        haft_files::replace(
            &self.path,
            format!("{HEADING}{text}").as_bytes(),
            Durability::PowerCut,
        )
        .map_err(fail)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T10:00:00Z".parse().unwrap()
    }

    #[test]
    fn trust_is_bound_to_the_folder_and_to_what_would_run() {
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let root = project.path().canonicalize().unwrap();
        let list = TrustList::at(state.path().join("deep/trust.toml"));
        assert_eq!(list.state(&root).unwrap(), TrustState::Untrusted);
        list.trust(&root, now()).unwrap();
        assert_eq!(list.state(&root).unwrap(), TrustState::Trusted);
        fs::write(root.join("AGENTS.md"), "words are not run").unwrap();
        assert_eq!(list.state(&root).unwrap(), TrustState::Trusted);
        fs::write(root.join(".mcp.json"), "{}").unwrap();
        assert_eq!(
            list.state(&root).unwrap(),
            TrustState::Changed {
                files: vec![".mcp.json".into()]
            }
        );
        list.trust(&root, now()).unwrap();
        assert_eq!(list.state(&root).unwrap(), TrustState::Trusted);
        assert_eq!(
            list.state(root.parent().unwrap()).unwrap(),
            TrustState::Untrusted
        );
        assert!(list.revoke(&root).unwrap());
        assert!(!list.revoke(&root).unwrap());
        assert_eq!(list.state(&root).unwrap(), TrustState::Untrusted);
    }

    #[test]
    fn what_hooks_and_servers_name_is_part_of_it_however_large() {
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let root = project.path().canonicalize().unwrap();
        let list = TrustList::at(state.path().join("trust.toml"));
        for folder in [".haft", "tools", "scripts"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        fs::write(
            root.join(".mcp.json"),
            r#"{"mcpServers": {"s": {"command": "python3", "args": ["tools/server.py"]}}}"#,
        )
        .unwrap();
        fs::write(
            root.join(".haft/config.toml"),
            "[[hooks.stop]]\nhooks = [{ command = \"./scripts/fmt.sh\" }]\n",
        )
        .unwrap();
        fs::write(root.join("scripts/fmt.sh"), "true").unwrap();
        let mut large = vec![b'x'; 20 << 20];
        fs::write(root.join("tools/server.py"), &large).unwrap();
        let grant = ServerGrant {
            network: vec!["example.com".into()],
            writable: vec!["/x".into()],
        };
        list.trust_and_grant(
            &root,
            now(),
            BTreeMap::from([("s".to_owned(), grant.clone())]),
        )
        .unwrap();
        assert_eq!(list.state(&root).unwrap(), TrustState::Trusted);
        for (name, content) in [("scripts/fmt.sh", &b"false"[..]), ("tools/server.py", &[])] {
            let before = fs::read(root.join(name)).unwrap();
            if content.is_empty() {
                // Past what was looked at once.
                *large.last_mut().unwrap() = b'y';
            }
            fs::write(
                root.join(name),
                if content.is_empty() { &large } else { content },
            )
            .unwrap();
            assert_eq!(
                list.state(&root).unwrap(),
                TrustState::Changed {
                    files: vec![name.into()]
                }
            );
            fs::write(root.join(name), before).unwrap();
        }
        fs::remove_file(root.join("scripts/fmt.sh")).unwrap();
        assert!(!list.state(&root).unwrap().is_trusted(), "gone");
        list.trust(&root, now()).unwrap();
        assert_eq!(list.record(&root).unwrap().servers["s"], grant, "kept");
        fs::write(root.join("scripts/fmt.sh"), "new").unwrap();
        assert!(!list.state(&root).unwrap().is_trusted(), "made since");
    }

    #[test]
    fn a_list_of_an_older_version_is_outdated_where_more_would_run() {
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let root = project.path().canonicalize().unwrap();
        let path = state.path().join("trust.toml");
        let list = TrustList::at(&path);
        fs::write(
            root.join(".mcp.json"),
            r#"{"mcpServers": {"s": {"command": "./s.sh"}}}"#,
        )
        .unwrap();
        list.trust(&root, now()).unwrap();
        let older = fs::read_to_string(&path)
            .unwrap()
            .replace("edition = 2\n", "");
        fs::write(&path, &older).unwrap();
        assert_eq!(
            list.state(&root).unwrap(),
            TrustState::Trusted,
            "nothing more would run"
        );
        fs::write(root.join("s.sh"), "").unwrap();
        assert_eq!(
            list.state(&root).unwrap(),
            TrustState::Outdated {
                files: vec!["s.sh".into()]
            }
        );
    }

    #[test]
    fn a_broken_list_trusts_nobody_and_says_so() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("trust.toml");
        fs::write(&path, "[[folder]]\npath = 3\n").unwrap();
        let error = TrustList::at(&path)
            .state(state.path())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("trust.toml") && error.contains("no folder is trusted"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "[[folder]]\npath = 3\n");
    }

    #[test]
    fn the_list_is_the_users_alone() {
        use std::os::unix::fs::PermissionsExt;
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let path = state.path().join("own/trust.toml");
        TrustList::at(&path).trust(project.path(), now()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
}
