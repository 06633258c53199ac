//! Finds and reads the sessions of other agents in the folders where these agents store them.
//! Nothing is written.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use haft_types::Timestamp;

use crate::{
    ImportError, ImportFormat, ImportedConversation, SourceText, list_stored_sessions,
    read_conversations, read_stored_text,
};

/// A folder in which another agent stores its sessions.
struct SessionFolder {
    format: ImportFormat,
    /// The path below the home folder, or below the project if it starts with `./`.
    folder: &'static str,
    /// The prefix and the possible suffixes of the session files' names.
    name: (&'static str, &'static [&'static str]),
    /// The number of levels of subfolders that are searched.
    depth: usize,
}

const fn new_session_folder(
    format: ImportFormat,
    folder: &'static str,
    name: (&'static str, &'static [&'static str]),
    depth: usize,
) -> SessionFolder {
    SessionFolder {
        format,
        folder,
        name,
        depth,
    }
}

const SESSION_FOLDERS: [SessionFolder; 10] = [
    new_session_folder(
        ImportFormat::ClaudeCode,
        ".claude/projects",
        ("", &[".jsonl"]),
        5,
    ),
    new_session_folder(ImportFormat::Codex, ".codex/sessions", ("", &[".jsonl"]), 5),
    new_session_folder(ImportFormat::Pi, ".pi/agent/sessions", ("", &[".jsonl"]), 5),
    new_session_folder(
        ImportFormat::Gemini,
        ".gemini/tmp",
        ("session-", &[".jsonl", ".json"]),
        3,
    ),
    new_session_folder(
        ImportFormat::Opencode,
        ".local/share/opencode",
        ("opencode", &[".db"]),
        0,
    ),
    new_session_folder(
        ImportFormat::Opencode,
        ".local/share/opencode/storage/session",
        ("ses_", &[".json"]),
        2,
    ),
    new_session_folder(
        ImportFormat::Goose,
        ".local/share/goose/sessions",
        ("", &[".db", ".jsonl"]),
        0,
    ),
    new_session_folder(
        ImportFormat::Kimi,
        ".kimi/sessions",
        ("context", &[".jsonl"]),
        3,
    ),
    new_session_folder(
        ImportFormat::Openhands,
        ".openhands/conversations",
        ("base_state", &[".json"]),
        1,
    ),
    new_session_folder(
        ImportFormat::AutoCoder,
        "./.auto-coder/conversations/conversations",
        ("", &[".json"]),
        0,
    ),
];

/// The maximum size of a session file, in bytes. Larger files are not read.
const MAX_SESSION_BYTES: u64 = 64 << 20;

/// The home folder and the project folder, below which other agents' session folders are searched.
/// Sessions below a folder that is `None` are not found.
#[derive(Clone, Debug, Default)]
pub struct SessionRoots {
    /// The user's home folder, if it is known.
    pub home: Option<PathBuf>,
    /// The root folder of the project, if there is one.
    pub project: Option<PathBuf>,
}

/// The reason why a session cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The session file cannot be read.
    #[error("{0}")]
    Io(std::io::Error),
    /// The session file is larger than 64 MiB, so it is not read.
    #[error("the session is too large")]
    TooLarge,
    /// The session file can be read, but its content cannot be imported.
    #[error("{0}")]
    Import(ImportError),
}

/// The location of a session: its file and, if the file contains several sessions, its id.
#[derive(Clone, Debug)]
pub struct SessionPlace {
    /// The file that contains the session.
    pub file: PathBuf,
    /// The id of the session, if the file contains several sessions.
    pub id: Option<String>,
    /// The format of the session file.
    pub format: ImportFormat,
}

/// A session of another agent that could be imported.
#[derive(Clone, Debug)]
pub struct ForeignSession {
    /// The format of the session file.
    pub format: ImportFormat,
    /// The file that contains the session.
    pub file: PathBuf,
    /// The path of the session file, relative to the agent's session folder.
    pub path: PathBuf,
    /// The id of the session, if the file contains several sessions.
    pub id: Option<String>,
    /// The name of the session, if it is known without reading the messages.
    pub name: Option<String>,
    /// The size of the session, in bytes.
    pub bytes: u64,
    /// The time at which the session was last changed.
    pub changed: Timestamp,
}

/// Returns a comma-separated list of all agents' session folders, for a message to the user.
pub fn format_session_folders() -> String {
    SESSION_FOLDERS
        .map(|one| {
            if one.folder.starts_with('.') && !one.folder.starts_with("./") {
                format!("~/{}", one.folder)
            } else {
                one.folder.to_owned()
            }
        })
        .join(", ")
}

impl SessionFolder {
    fn resolve_root(&self, roots: &SessionRoots) -> Option<PathBuf> {
        match self.folder.strip_prefix("./") {
            Some(folder) => Some(roots.project.as_ref()?.join(folder)),
            None => Some(roots.home.as_ref()?.join(self.folder)),
        }
    }

    fn matches_name(&self, name: &str) -> bool {
        name.starts_with(self.name.0) && self.name.1.iter().any(|end| name.ends_with(end))
    }

    /// Adds the session files in a folder and its subfolders to `found`. Unreadable entries are
    /// skipped, and links are not followed.
    fn collect_sessions(
        &self,
        folder: &Path,
        below: &Path,
        deeper: usize,
        found: &mut Vec<ForeignSession>,
    ) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = below.join(entry.file_name());
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && deeper > 0 {
                self.collect_sessions(&entry.path(), &path, deeper - 1, found);
            } else if kind.is_file() && self.matches_name(&entry.file_name().to_string_lossy()) {
                let Ok((bytes, changed)) = entry
                    .metadata()
                    .and_then(|data| Ok((data.len(), data.modified()?)))
                else {
                    continue;
                };
                self.add_file(entry.path(), path, (bytes, changed), found);
            }
        }
    }

    fn add_file(
        &self,
        file: PathBuf,
        path: PathBuf,
        (bytes, changed): (u64, SystemTime),
        found: &mut Vec<ForeignSession>,
    ) {
        let format = self.format;
        let changed = Timestamp::try_from(changed).unwrap_or(Timestamp::UNIX_EPOCH);
        if path.extension().is_none_or(|end| end != "db") {
            return found.push(ForeignSession {
                format,
                file,
                path,
                id: None,
                name: None,
                bytes,
                changed,
            });
        }
        found.extend(
            list_stored_sessions(&file)
                .unwrap_or_default()
                .into_iter()
                .map(|one| ForeignSession {
                    format,
                    file: file.clone(),
                    path: path.clone(),
                    id: Some(one.id),
                    name: Some(one.name),
                    bytes: one.bytes,
                    changed: one.changed.unwrap_or(changed),
                }),
        );
    }
}

/// Lists the sessions of all known agents. The newest session comes first.
pub fn list_foreign_sessions(roots: &SessionRoots) -> Vec<ForeignSession> {
    let mut found = Vec::new();
    for folder in &SESSION_FOLDERS {
        if let Some(root) = folder.resolve_root(roots) {
            folder.collect_sessions(&root, Path::new(""), folder.depth, &mut found);
        }
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.changed));
    found
}

/// Finds the session of `agent` at `path`, which is relative to the agent's session folder. Files
/// outside that folder are never found.
pub fn find_session(roots: &SessionRoots, agent: &str, path: &[&str]) -> Option<SessionPlace> {
    let within = |folder: &SessionFolder, path: &[&str]| {
        let root = fs::canonicalize(folder.resolve_root(roots)?).ok()?;
        let path: PathBuf = path.iter().collect();
        let below = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let named = path
            .file_name()
            .is_some_and(|name| folder.matches_name(&name.to_string_lossy()));
        let file = fs::canonicalize(root.join(&path)).ok()?;
        (below && named && file.is_file() && file.starts_with(&root)).then_some(file)
    };
    SESSION_FOLDERS
        .iter()
        .filter(|folder| folder.format.name() == agent)
        .find_map(|folder| {
            let format = folder.format;
            if let Some(file) = within(folder, path) {
                return Some(SessionPlace {
                    file,
                    id: None,
                    format,
                });
            }
            let (id, path) = path.split_last()?;
            Some(SessionPlace {
                file: within(folder, path)?,
                id: Some((*id).to_owned()),
                format,
            })
        })
}

pub fn read_session(place: &SessionPlace) -> Result<Vec<ImportedConversation>, SessionError> {
    let SessionPlace { file, id, format } = place;
    let about = fs::metadata(file).map_err(SessionError::Io)?;
    let stored = read_stored_text(file, id.as_deref()).map_err(SessionError::Import)?;
    let text = match stored {
        Some(text) => text,
        None if about.len() > MAX_SESSION_BYTES => return Err(SessionError::TooLarge),
        None => fs::read_to_string(file).map_err(SessionError::Io)?,
    };
    // Messages without a time get the modification time of the file.
    let now = about
        .modified()
        .ok()
        .and_then(|time| Timestamp::try_from(time).ok())
        .unwrap_or(Timestamp::UNIX_EPOCH);
    read_conversations(SourceText { text: &text, now }, Some(*format)).map_err(SessionError::Import)
}

/// Lists the session files of the agent with this name. Returns `None` if no session folder of the
/// agent is known.
pub fn list_session_files(roots: &SessionRoots, agent: &Path) -> Option<Vec<PathBuf>> {
    let format: ImportFormat = agent.to_str()?.parse().ok()?;
    SESSION_FOLDERS
        .iter()
        .any(|folder| folder.format == format)
        .then(|| {
            let all = list_foreign_sessions(roots);
            let mut files: Vec<_> = all
                .into_iter()
                .filter(|one| one.format == format)
                .map(|one| one.file)
                .collect();
            files.sort();
            files.dedup();
            files
        })
}
