//! Sessions of other agents where these keep them: listed and read, never written and not stored.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use haft_imports::{ImportFormat, SourceText, read_conversations};
use haft_serve::Markup;
use haft_text::grouped;
use haft_types::Timestamp;

use super::{Inspector, encoded, page, spoken};

/// Where agents keep their sessions, below the user's home.
const USUAL: [(ImportFormat, &str); 3] = [
    (ImportFormat::ClaudeCode, ".claude/projects"),
    (ImportFormat::Codex, ".codex/sessions"),
    (ImportFormat::Pi, ".pi/agent/sessions"),
];
/// Sessions that are listed, the newest first.
const MOST: usize = 200;
/// Folders inside folders that are looked into.
const DEEPEST: usize = 5;
/// A session that is shown at most.
const LARGEST: u64 = 64 << 20;
/// Messages that are shown at most.
const SHOWN: usize = 1_000;

/// A session of another agent.
struct SessionFile {
    format: ImportFormat,
    /// Below the folder of its agent.
    path: PathBuf,
    bytes: u64,
    changed: SystemTime,
}

impl Inspector {
    /// The sessions of all agents, the newest first.
    pub(super) fn elsewhere(&self) -> String {
        let mut files = Vec::new();
        for (format, folder) in USUAL {
            if let Some(home) = &self.home {
                list(&home.join(folder), Path::new(""), format, DEEPEST, &mut files);
            }
        }
        files.sort_by_key(|file| std::cmp::Reverse(file.changed));
        let rows = files.iter().take(MOST).map(|file| {
            let path = file.path.to_string_lossy();
            let to: Vec<_> = path.split('/').map(encoded).collect();
            let changed = Timestamp::try_from(file.changed).unwrap_or(Timestamp::UNIX_EPOCH);
            vec![
                Markup::link(&format!("/sessions/{}/{}", file.format, to.join("/")), &path),
                Markup::text(file.format.name()),
                Markup::text(grouped(file.bytes)),
                Markup::text(changed.strftime("%Y-%m-%d %H:%M").to_string()),
            ]
        });
        let headings = [text!("serve-name"), text!("serve-agent"), text!("serve-bytes"), text!("serve-updated")];
        let folders = USUAL.map(|(_, folder)| format!("~/{folder}")).join(", ");
        let pieces = [
            Markup::plain("h1", text!("serve-sessions")),
            Markup::plain("p", text!("serve-sessions-note", folders)),
            Markup::table(&headings, rows),
        ];
        page(text!("serve-sessions"), Markup::all([]), pieces)
    }

    /// One of them, read as it is now.
    pub(super) fn session(&self, agent: &str, path: &[&str]) -> Option<String> {
        let (format, folder) = USUAL.into_iter().find(|(format, _)| format.name() == agent)?;
        let folder = fs::canonicalize(self.home.as_ref()?.join(folder)).ok()?;
        let path: PathBuf = path.iter().collect();
        let below = path.components().all(|part| matches!(part, Component::Normal(_)));
        let file = fs::canonicalize(folder.join(&path)).ok().filter(|file| below && file.starts_with(&folder))?;
        let name = path.to_string_lossy();
        let mut pieces = vec![Markup::plain("h1", &name)];
        match read(&file, format) {
            Ok(conversations) => pieces.extend(conversations),
            Err(problem) => {
                let alert = [("class", "broken"), ("role", "alert")];
                pieces.push(Markup::element("p", &alert, [Markup::text(problem)]));
            }
        }
        Some(page(&name, Markup::link("/sessions", text!("serve-sessions")), pieces))
    }
}

fn read(file: &Path, format: ImportFormat) -> Result<Vec<Markup>, String> {
    let size = fs::metadata(file).map_err(|error| error.to_string())?;
    if !size.is_file() || size.len() > LARGEST {
        return Err(text!("serve-session-too-large").to_owned());
    }
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let source = SourceText { text: &text, now: Timestamp::UNIX_EPOCH };
    let read = read_conversations(source, Some(format)).map_err(|error| error.to_string())?;
    let mut pieces = vec![Markup::plain("p", text!("serve-session-note", path = file.display()))];
    for one in read {
        let messages = &one.document.messages;
        let (messages, skipped) = (&messages[..messages.len().min(SHOWN)], one.skipped);
        if skipped > 0 {
            pieces.push(Markup::plain("p", text!("serve-session-skipped", skipped)));
        }
        pieces.extend(messages.iter().map(|message| spoken(None, message)));
    }
    Ok(pieces)
}

/// The session files in a folder and below. What cannot be read is passed over; links are not followed.
fn list(folder: &Path, below: &Path, format: ImportFormat, deeper: usize, files: &mut Vec<SessionFile>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, Ok(kind)) = (below.join(entry.file_name()), entry.file_type()) else { continue };
        if kind.is_dir() && deeper > 0 {
            list(&entry.path(), &path, format, deeper - 1, files);
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "jsonl") {
            let Ok((data, changed)) = entry.metadata().and_then(|data| Ok((data.len(), data.modified()?))) else {
                continue;
            };
            files.push(SessionFile { format, path, bytes: data, changed });
        }
    }
}
