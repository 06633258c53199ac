//! The folders that the user trusts, and their content when they were trusted.
//!
//! The list is a file of the user, never of a project. An entry is bound to the canonical path of a
//! folder and to the hash of everything in the folder that haft would run: any change revokes the
//! trust until the user renews it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use haft_files::Durability;
use haft_types::{ContentHash, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Footprint;

/// The version of the footprint format that is recorded in new entries. Version 2 added the files
/// named by hooks and servers, version 3 the commands and workflows of auto-coder.
const FOOTPRINT_VERSION: u32 = 3;

/// The maximum size of the list of trusted folders, in bytes.
const MAX_LIST_BYTES: u64 = 64 << 20;

const FILE_HEADING: &str =
    "# Folders you trust, written by `haft trust`. Remove an entry to take the trust back.\n\n";

/// Describes whether a folder is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustState {
    Trusted,
    /// The folder was never trusted.
    Untrusted,
    /// The folder was trusted, but files that haft would run have changed.
    Changed {
        /// The files that were added, removed or changed.
        files: Vec<String>,
    },
    /// The folder was trusted by an older version of haft, which did not record all files that haft
    /// would run.
    Outdated {
        /// The files that were added, removed or changed, compared with the record.
        files: Vec<String>,
    },
}

impl TrustState {
    /// True if the folder's instructions may be followed and its programs run.
    pub fn is_trusted(&self) -> bool {
        match self {
            Self::Trusted => true,
            Self::Untrusted | Self::Changed { .. } | Self::Outdated { .. } => false,
        }
    }
}

/// The reason why the list could not be read or written, or why a folder could not be trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file that contains the list is malformed.
    #[error("{}: {problem}; mend it or remove it (no folder is trusted then)", .path.display())]
    Unreadable {
        /// The path of the malformed file.
        path: PathBuf,
        /// The error of the TOML parser.
        problem: String,
    },
    /// The list file or its folder could not be read or written.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// The failed operation, as a verb such as `read`.
        doing: &'static str,
        /// The path of the list file or of its folder.
        path: PathBuf,
        source: io::Error,
    },
    /// A part of the folder's footprint could not be read.
    #[error(
        "{} cannot be trusted: not everything that would run could be looked at (a link to a folder, an unreadable file, or too many files under `.haft` or `.claude`)", .path.display()
    )]
    Incomplete {
        /// The path of the folder that cannot be trusted.
        path: PathBuf,
    },
}

/// The list of the folders that one user trusts.
#[derive(Clone, Debug)]
pub struct TrustList {
    path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    #[serde(default)]
    folder: Vec<TrustRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    declined: Vec<DeclinedFolder>,
}

/// A folder that the user was asked about and did not trust.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclinedFolder {
    path: PathBuf,
    /// The content hash of each file that haft would have run, by path relative to the folder.
    #[serde(default)]
    runs: BTreeMap<String, ContentHash>,
}

/// The entry of a trusted folder in the list: the files that haft would run, and the grants to the
/// project's servers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    path: PathBuf,
    trusted_at: Timestamp,
    #[serde(default)]
    edition: u32,
    /// The content hash of each file that haft would run, as of the time when the folder was
    /// trusted, by path relative to the folder.
    #[serde(default)]
    pub runs: BTreeMap<String, ContentHash>,
    /// The access granted to the project's servers, by server name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, ServerGrant>,
}

/// Access that a project's server has in addition to the project itself and the access of commands.
/// The access is either requested by the server, or granted when the folder was trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerGrant {
    /// Hosts that the server may reach, in the form of `[sandbox] network`.
    pub network: Vec<String>,
    /// Folders in which the server may write, in the form of `[sandbox] writable`.
    pub writable: Vec<PathBuf>,
}

impl TrustList {
    /// Creates a handle for the list in the file `path`, which need not exist.
    pub fn at_path(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Compares the content of a folder with its entry in the list. `root` is the canonical path of
    /// the folder.
    pub fn trust_state(&self, root: &Path) -> Result<TrustState, TrustError> {
        let stored = self.read_list()?;
        let Some(entry) = stored.folder.iter().find(|entry| entry.path == root) else {
            return Ok(TrustState::Untrusted);
        };
        let now = Footprint::read_project(root);
        let mut files = now.changed_paths_since(&entry.runs);
        if !now.is_complete() {
            files.push("(something that could not be looked at)".to_owned());
        }
        let is_known = files.iter().any(|name| entry.runs.contains_key(name));
        Ok(
            match (
                files.is_empty(),
                entry.edition < FOOTPRINT_VERSION && !is_known,
            ) {
                (true, _) => TrustState::Trusted,
                (false, true) => TrustState::Outdated { files },
                (false, false) => TrustState::Changed { files },
            },
        )
    }

    /// Returns the entry of a folder, or an empty entry if the folder was never trusted.
    pub fn find_record(&self, root: &Path) -> Result<TrustRecord, TrustError> {
        Ok(self
            .read_list()?
            .folder
            .into_iter()
            .find(|entry| entry.path == root)
            .unwrap_or_default())
    }

    /// Trusts a folder with its current content, and keeps the existing grants to its servers.
    /// `root` is the canonical path of the folder.
    pub fn trust_folder(&self, root: &Path, now: Timestamp) -> Result<Footprint, TrustError> {
        self.trust_and_grant(root, now, self.find_record(root)?.servers)
    }

    /// Records that the user has approved the content of one file of a trusted folder. `name` is the
    /// path of the file relative to `root`. If the file has another content, or other files have
    /// changed, the folder is not trusted. Does nothing for a folder that was never trusted.
    pub fn record_file(&self, root: &Path, name: &str, content: &[u8]) -> Result<(), TrustError> {
        let mut stored = self.read_list()?;
        let mut entries = stored.folder.iter_mut();
        let Some(entry) = entries.find(|entry| entry.path == root) else {
            return Ok(());
        };
        let hash = Footprint::hash_file_content(content);
        entry.runs.insert(name.to_owned(), hash);
        self.write_list(&stored)
    }

    /// Like [`Self::trust_folder`], but replaces the grants to the folder's servers.
    pub fn trust_and_grant(
        &self,
        root: &Path,
        now: Timestamp,
        servers: BTreeMap<String, ServerGrant>,
    ) -> Result<Footprint, TrustError> {
        let footprint = Footprint::read_project(root);
        if !footprint.is_complete() {
            return Err(TrustError::Incomplete {
                path: root.to_owned(),
            });
        }
        let mut stored = self.read_list()?;
        stored.folder.retain(|entry| entry.path != root);
        stored.declined.retain(|entry| entry.path != root);
        let path = root.to_owned();
        let runs = footprint.files().clone();
        stored.folder.push(TrustRecord {
            path,
            trusted_at: now,
            edition: FOOTPRINT_VERSION,
            runs,
            servers,
        });
        self.write_list(&stored)?;
        Ok(footprint)
    }

    /// Returns true if the user was asked about a folder with its current content and did not trust
    /// it.
    pub fn was_declined(&self, root: &Path) -> Result<bool, TrustError> {
        let stored = self.read_list()?;
        let entry = stored.declined.iter().find(|entry| entry.path == root);
        Ok(entry.is_some_and(|entry| entry.runs == *Footprint::read_project(root).files()))
    }

    /// Records that the user was asked about a folder with the content `footprint` and did not
    /// trust it.
    pub fn record_declined(&self, root: &Path, footprint: &Footprint) -> Result<(), TrustError> {
        let mut stored = self.read_list()?;
        stored.declined.retain(|entry| entry.path != root);
        stored.declined.push(DeclinedFolder {
            path: root.to_owned(),
            runs: footprint.files().clone(),
        });
        self.write_list(&stored)
    }

    /// Revokes the trust in a folder. Returns false if the folder was not trusted.
    pub fn revoke_trust(&self, root: &Path) -> Result<bool, TrustError> {
        let mut stored = self.read_list()?;
        let before = stored.folder.len();
        stored.folder.retain(|entry| entry.path != root);
        let had = stored.folder.len() != before;
        if had {
            self.write_list(&stored)?;
        }
        Ok(had)
    }

    fn read_list(&self) -> Result<TrustFile, TrustError> {
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

    fn write_list(&self, stored: &TrustFile) -> Result<(), TrustError> {
        let fail = |source| TrustError::Io {
            doing: "write",
            path: self.path.clone(),
            source,
        };
        let text = toml::to_string(stored).map_err(|error| fail(io::Error::other(error)))?;
        haft_files::replace_file(
            &self.path,
            format!("{FILE_HEADING}{text}").as_bytes(),
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
    fn trust_ends_when_a_file_that_would_run_changes() {
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let root = project.path().canonicalize().unwrap();
        let list = TrustList::at_path(state.path().join("deep/trust.toml"));
        assert_eq!(list.trust_state(&root).unwrap(), TrustState::Untrusted);
        list.trust_folder(&root, now()).unwrap();
        assert_eq!(list.trust_state(&root).unwrap(), TrustState::Trusted);
        fs::write(root.join("AGENTS.md"), "words are not run").unwrap();
        assert_eq!(list.trust_state(&root).unwrap(), TrustState::Trusted);
        fs::write(root.join(".mcp.json"), "{}").unwrap();
        assert_eq!(
            list.trust_state(&root).unwrap(),
            TrustState::Changed {
                files: vec![".mcp.json".into()]
            }
        );
        list.trust_folder(&root, now()).unwrap();
        assert_eq!(list.trust_state(&root).unwrap(), TrustState::Trusted);
        assert_eq!(
            list.trust_state(root.parent().unwrap()).unwrap(),
            TrustState::Untrusted
        );
        assert!(list.revoke_trust(&root).unwrap());
        assert!(!list.revoke_trust(&root).unwrap());
        assert_eq!(list.trust_state(&root).unwrap(), TrustState::Untrusted);
    }

    #[test]
    fn declined_folder_is_asked_about_again_when_its_programs_change() {
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let root = project.path().canonicalize().unwrap();
        let list = TrustList::at_path(state.path().join("trust.toml"));
        assert!(!list.was_declined(&root).unwrap());
        list.record_declined(&root, &Footprint::read_project(&root))
            .unwrap();
        assert!(list.was_declined(&root).unwrap());
        assert_eq!(list.trust_state(&root).unwrap(), TrustState::Untrusted);
        fs::write(root.join(".mcp.json"), "{}").unwrap();
        assert!(!list.was_declined(&root).unwrap());
        list.record_declined(&root, &Footprint::read_project(&root))
            .unwrap();
        list.trust_folder(&root, now()).unwrap();
        assert!(!list.was_declined(&root).unwrap());
    }

    #[test]
    fn trust_covers_files_named_by_hooks_and_servers_of_any_size() {
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let root = project.path().canonicalize().unwrap();
        let list = TrustList::at_path(state.path().join("trust.toml"));
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
        assert_eq!(list.trust_state(&root).unwrap(), TrustState::Trusted);
        for (name, content) in [("scripts/fmt.sh", &b"false"[..]), ("tools/server.py", &[])] {
            let before = fs::read(root.join(name)).unwrap();
            if content.is_empty() {
                // Beyond the part of the file that a fast check would read.
                *large.last_mut().unwrap() = b'y';
            }
            fs::write(
                root.join(name),
                if content.is_empty() { &large } else { content },
            )
            .unwrap();
            assert_eq!(
                list.trust_state(&root).unwrap(),
                TrustState::Changed {
                    files: vec![name.into()]
                }
            );
            fs::write(root.join(name), before).unwrap();
        }
        fs::remove_file(root.join("scripts/fmt.sh")).unwrap();
        assert!(!list.trust_state(&root).unwrap().is_trusted(), "gone");
        list.trust_folder(&root, now()).unwrap();
        assert_eq!(list.find_record(&root).unwrap().servers["s"], grant, "kept");
        fs::write(root.join("scripts/fmt.sh"), "new").unwrap();
        assert!(!list.trust_state(&root).unwrap().is_trusted(), "made since");
    }

    #[test]
    fn trust_list_of_an_older_version_is_outdated_if_more_would_run() {
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let root = project.path().canonicalize().unwrap();
        let path = state.path().join("trust.toml");
        let list = TrustList::at_path(&path);
        fs::write(
            root.join(".mcp.json"),
            r#"{"mcpServers": {"s": {"command": "./s.sh"}}}"#,
        )
        .unwrap();
        list.trust_folder(&root, now()).unwrap();
        let older = fs::read_to_string(&path)
            .unwrap()
            .replace("edition = 3\n", "");
        fs::write(&path, &older).unwrap();
        assert_eq!(
            list.trust_state(&root).unwrap(),
            TrustState::Trusted,
            "nothing more would run"
        );
        fs::write(root.join("s.sh"), "").unwrap();
        assert_eq!(
            list.trust_state(&root).unwrap(),
            TrustState::Outdated {
                files: vec!["s.sh".into()]
            }
        );
    }

    #[test]
    fn record_trusts_exactly_the_approved_content() {
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let root = project.path().canonicalize().unwrap();
        let list = TrustList::at_path(state.path().join("trust.toml"));
        let tools = root.join(".haft/tools");
        fs::create_dir_all(&tools).unwrap();
        let name = ".haft/tools/a.sh";
        list.record_file(&root, name, b"x").unwrap();
        assert_eq!(list.trust_state(&root).unwrap(), TrustState::Untrusted);
        list.trust_folder(&root, now()).unwrap();
        fs::write(tools.join("a.sh"), "echo 1\n").unwrap();
        list.record_file(&root, name, b"echo 1\n").unwrap();
        assert_eq!(list.trust_state(&root).unwrap(), TrustState::Trusted);
        fs::write(tools.join("a.sh"), "echo 2\n").unwrap();
        let changed = |file: &str| TrustState::Changed {
            files: vec![file.to_owned()],
        };
        assert_eq!(list.trust_state(&root).unwrap(), changed(name));
        fs::write(tools.join("a.sh"), "echo 1\n").unwrap();
        fs::write(tools.join("b.sh"), "").unwrap();
        assert_eq!(
            list.trust_state(&root).unwrap(),
            changed(".haft/tools/b.sh")
        );
    }

    #[test]
    fn trust_list_that_is_broken_trusts_no_folder() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("trust.toml");
        fs::write(&path, "[[folder]]\npath = 3\n").unwrap();
        let error = TrustList::at_path(&path)
            .trust_state(state.path())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("trust.toml") && error.contains("no folder is trusted"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "[[folder]]\npath = 3\n");
    }

    #[test]
    fn trust_list_is_private_to_the_user() {
        use std::os::unix::fs::PermissionsExt;
        let state = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let path = state.path().join("own/trust.toml");
        TrustList::at_path(&path)
            .trust_folder(project.path(), now())
            .unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
}
