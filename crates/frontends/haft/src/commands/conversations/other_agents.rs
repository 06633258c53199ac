//! Sessions of other agents where these keep them: found and read, never written.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use haft_imports::{
    ImportFormat, ImportedConversation, SourceText, read_conversations, stored_sessions,
    stored_text,
};
use haft_types::Timestamp;

use crate::wiring;

/// A folder in which an agent keeps its sessions.
struct SessionFolder {
    format: ImportFormat,
    /// Below the user's home; below the project where it begins with a dot and a slash.
    folder: &'static str,
    /// How the names of its files begin and end.
    name: (&'static str, &'static [&'static str]),
    /// Folders inside folders that are looked into.
    depth: usize,
}

const fn at(
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

const FOLDERS: [SessionFolder; 10] = [
    at(
        ImportFormat::ClaudeCode,
        ".claude/projects",
        ("", &[".jsonl"]),
        5,
    ),
    at(ImportFormat::Codex, ".codex/sessions", ("", &[".jsonl"]), 5),
    at(ImportFormat::Pi, ".pi/agent/sessions", ("", &[".jsonl"]), 5),
    at(
        ImportFormat::Gemini,
        ".gemini/tmp",
        ("session-", &[".jsonl", ".json"]),
        3,
    ),
    at(
        ImportFormat::Opencode,
        ".local/share/opencode",
        ("opencode", &[".db"]),
        0,
    ),
    at(
        ImportFormat::Opencode,
        ".local/share/opencode/storage/session",
        ("ses_", &[".json"]),
        2,
    ),
    at(
        ImportFormat::Goose,
        ".local/share/goose/sessions",
        ("", &[".db", ".jsonl"]),
        0,
    ),
    at(
        ImportFormat::Kimi,
        ".kimi/sessions",
        ("context", &[".jsonl"]),
        3,
    ),
    at(
        ImportFormat::Openhands,
        ".openhands/conversations",
        ("base_state", &[".json"]),
        1,
    ),
    at(
        ImportFormat::AutoCoder,
        "./.auto-coder/conversations/conversations",
        ("", &[".json"]),
        0,
    ),
];

/// A session that is read at most.
const LARGEST: u64 = 64 << 20;

/// A session of another agent.
pub(crate) struct ForeignSession {
    pub(crate) format: ImportFormat,
    /// The file it is in.
    pub(crate) file: PathBuf,
    /// The file below the folder of its agent, and its id where the file holds several.
    pub(crate) path: PathBuf,
    pub(crate) id: Option<String>,
    /// What it is called where its file says so at once.
    pub(crate) name: Option<String>,
    pub(crate) bytes: u64,
    pub(crate) changed: Timestamp,
}

/// The folders, as people write them.
pub(crate) fn folders() -> String {
    FOLDERS
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
    fn root(&self, home: Option<&Path>) -> Option<PathBuf> {
        match self.folder.strip_prefix("./") {
            Some(folder) => Some(std::env::current_dir().ok()?.join(folder)),
            None => Some(home?.join(self.folder)),
        }
    }

    fn holds(&self, name: &str) -> bool {
        name.starts_with(self.name.0) && self.name.1.iter().any(|end| name.ends_with(end))
    }

    /// The session files in a folder and below. What cannot be read is passed over; links are not
    /// followed.
    fn list(&self, folder: &Path, below: &Path, deeper: usize, found: &mut Vec<ForeignSession>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, Ok(kind)) = (below.join(entry.file_name()), entry.file_type()) else {
                continue;
            };
            if kind.is_dir() && deeper > 0 {
                self.list(&entry.path(), &path, deeper - 1, found);
            } else if kind.is_file() && self.holds(&entry.file_name().to_string_lossy()) {
                let Ok((bytes, changed)) = entry
                    .metadata()
                    .and_then(|data| Ok((data.len(), data.modified()?)))
                else {
                    continue;
                };
                self.add(entry.path(), path, (bytes, changed), found);
            }
        }
    }

    fn add(
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
            stored_sessions(&file)
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

/// The sessions of all agents, the newest first.
pub(crate) fn sessions(home: Option<&Path>) -> Vec<ForeignSession> {
    let mut found = Vec::new();
    for folder in &FOLDERS {
        if let Some(root) = folder.root(home) {
            folder.list(&root, Path::new(""), folder.depth, &mut found);
        }
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.changed));
    found
}

/// The file and the id behind the name of an agent and a path below its folder; nothing outside of
/// the folder.
pub(crate) fn find(
    home: Option<&Path>,
    agent: &str,
    path: &[&str],
) -> Option<(PathBuf, Option<String>, ImportFormat)> {
    let within = |folder: &SessionFolder, path: &[&str]| {
        let root = fs::canonicalize(folder.root(home)?).ok()?;
        let path: PathBuf = path.iter().collect();
        let below = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let named = path
            .file_name()
            .is_some_and(|name| folder.holds(&name.to_string_lossy()));
        let file = fs::canonicalize(root.join(&path)).ok()?;
        (below && named && file.is_file() && file.starts_with(&root)).then_some(file)
    };
    FOLDERS
        .iter()
        .filter(|folder| folder.format.name() == agent)
        .find_map(|folder| {
            if let Some(file) = within(folder, path) {
                return Some((file, None, folder.format));
            }
            let (id, path) = path.split_last()?;
            Some((within(folder, path)?, Some((*id).to_owned()), folder.format))
        })
}

/// Reads a session as it is now.
pub(crate) fn read(
    file: &Path,
    id: Option<&str>,
    format: ImportFormat,
) -> Result<Vec<ImportedConversation>, String> {
    let about = fs::metadata(file).map_err(|error| error.to_string())?;
    let stored = stored_text(file, id).map_err(|error| error.to_string())?;
    let text = match stored {
        Some(text) => text,
        None if about.len() > LARGEST => return Err(text!("serve-session-too-large").to_owned()),
        None => fs::read_to_string(file).map_err(|error| error.to_string())?,
    };
    // A conversation without times is as old as its file.
    let now = about
        .modified()
        .ok()
        .and_then(|time| Timestamp::try_from(time).ok())
        .unwrap_or(Timestamp::UNIX_EPOCH);
    read_conversations(SourceText { text: &text, now }, Some(format))
        .map_err(|error| error.to_string())
}

/// The files of an agent's usual folders, for the agent's name in place of a path; none for any
/// other name.
pub(super) fn files_of(agent: &Path) -> Option<Vec<PathBuf>> {
    let format: ImportFormat = agent.to_str()?.parse().ok()?;
    FOLDERS
        .iter()
        .any(|folder| folder.format == format)
        .then(|| {
            let all = sessions(wiring::environment().absolute_home().as_deref());
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
