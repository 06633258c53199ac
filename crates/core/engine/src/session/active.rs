//! Active context: descriptions of the project's folders, part of the system message, and written
//! anew after a turn that changed files.
//!
//! Invariant: while what was sent can still be in the provider's cache, what was sent of them stays
//! as it is, also in another process: the text is kept with the conversation. A description that
//! cannot be written is a warning and changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haft_context::{ChangedFile, FolderChange, active_request};
use haft_project::active;
use haft_tool::FileChange;
use haft_types::{ChangeKind, ModelSpec, Outcome, PermissionMode, Role, TokenCounter};

use super::{EngineError, Session, SessionConfig};
use crate::stored_state::{SentDescriptions, StoredState};
use crate::turn_io::TurnIo;

/// So many folders are described after one turn.
const MOST_FOLDERS: usize = 8;
/// So many files of a folder are shown to whoever describes it, and so many bytes of each.
const MOST_FILES: usize = 10;
const MOST_BYTES: usize = 4 * 1024;
/// So many names of a folder, and so many characters of the task and of the answer.
const MOST_NAMES: usize = 100;
const MOST_CHARACTERS: usize = 2_000;

/// The files of each folder that changed, and what became of each.
type Changed = BTreeMap<PathBuf, BTreeMap<PathBuf, ChangeKind>>;

/// What is sent of the descriptions, and what has to be described.
#[derive(Default)]
pub(crate) struct Active {
    text: Option<String>,
    /// Whether the store knows the text.
    kept: bool,
    changed: Changed,
}

impl Active {
    /// What was sent last of them; of a conversation that sent nothing yet, what there is.
    pub(crate) fn open(config: &SessionConfig, state: &mut StoredState) -> Self {
        if !config.policy.active {
            return Self::default();
        }
        match state.take() {
            Some(SentDescriptions(text)) => Self {
                text,
                kept: true,
                changed: Changed::new(),
            },
            None => Self {
                text: current(config),
                kept: false,
                changed: Changed::new(),
            },
        }
    }

    /// The text for the system message.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Takes over what the descriptions say now, and gives whether that is something else.
    pub(crate) fn refresh(&mut self, config: &SessionConfig) -> bool {
        if !config.policy.active {
            return false;
        }
        let now = current(config);
        let changed = now != self.text;
        if changed {
            self.text = now;
            self.kept = false;
        }
        changed
    }

    /// Notes what a call changed.
    pub(crate) fn note(&mut self, root: &Path, change: &FileChange) {
        let Ok(inside) = change.path.strip_prefix(root) else {
            return;
        };
        let hidden =
            |part: std::path::Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        let folder = inside.parent().unwrap_or(Path::new(""));
        if !folder.components().any(hidden) {
            self.changed
                .entry(folder.to_owned())
                .or_default()
                .insert(inside.to_owned(), change.kind);
        }
    }
}

/// The descriptions as they are on disk.
fn current(config: &SessionConfig) -> Option<String> {
    let found = active::load(&config.knowledge.paths, &mut Vec::new());
    active::text(&found).map(|text| config.safety.masker.mask(&text).into_owned())
}

impl Session {
    /// Keeps with the conversation what is sent of them.
    pub(crate) async fn keep_descriptions(&mut self) -> Result<(), EngineError> {
        if self.config.policy.active && !self.prompt.active.kept {
            self.transcript
                .keep_state(&SentDescriptions(self.prompt.active.text.clone()))
                .await?;
            self.prompt.active.kept = true;
        }
        Ok(())
    }

    /// After a turn: has the folders described anew in which files changed.
    pub(crate) async fn describe_changes(&mut self, outcome: Outcome, io: &mut TurnIo<'_>) {
        let mut changed = std::mem::take(&mut self.prompt.active.changed);
        let wanted = match outcome {
            Outcome::Completed | Outcome::Waiting => true,
            // Nobody wants to wait or to pay for more.
            Outcome::Aborted | Outcome::Exhausted | Outcome::Failed => false,
        };
        let may_write = self.config.knowledge.paths.trusted && self.mode() != PermissionMode::Plan;
        if !self.config.policy.active || !wanted || !may_write {
            return;
        }
        changed.retain(|folder, _| self.config.knowledge.paths.root.join(folder).is_dir());
        let until = Instant::now() + Duration::from_secs(self.config.policy.summary_timeout.into());
        for (folder, files) in changed.into_iter().take(MOST_FOLDERS) {
            let left = until.saturating_duration_since(Instant::now());
            if let Err(why) = self.describe(&folder, &files, left, io).await {
                let folder = if folder.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    &folder
                };
                let message = format!(
                    "the description of `{}` was not brought up to date: {why}",
                    folder.display()
                );
                io.error("active_context", message);
            }
        }
    }

    async fn describe(
        &mut self,
        folder: &Path,
        files: &BTreeMap<PathBuf, ChangeKind>,
        limit: Duration,
        io: &mut TurnIo<'_>,
    ) -> Result<(), String> {
        let masker = self.config.safety.masker.clone();
        let masked = |text: &str| masker.mask(text).into_owned();
        let paths = self.config.knowledge.paths.clone();
        let before = active::load(&paths, &mut Vec::new())
            .into_iter()
            .find(|one| one.folder == folder);
        let before = before.map(|one| masked(&one.text));
        let names = names_in(&paths.root.join(folder));
        let shown: Vec<_> = files
            .iter()
            .take(MOST_FILES)
            .map(|(path, kind)| ChangedFile {
                path: path.display().to_string(),
                change: word(*kind),
                text: masked(&beginning(&paths.root.join(path))),
            })
            .collect();
        let newest = |role| self.transcript.newest_text(role, MOST_CHARACTERS);
        let task = newest(Role::User);
        let answer = newest(Role::Assistant);
        let name = folder.display().to_string();
        let change = FolderChange {
            folder: if name.is_empty() { "." } else { &name },
            before: before.as_deref(),
            names: &names,
            files: &shown,
            task: &task,
            answer: &answer,
        };
        let language = self.config.policy.prompt_language;
        let request = |by: &ModelSpec, counter: &dyn TokenCounter| {
            active_request(&change, language, by, counter)
        };
        let made = self.ask_summariser(&request, limit, io).await?;
        io.emit(made.usage_event());
        let text = made.written().map_err(|why| why.to_string())?;
        active::write(&paths, folder, &masked(&text)).map_err(|error| error.to_string())
    }
}

fn word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names.truncate(MOST_NAMES);
    names
}

/// The beginning of a text file; empty for anything else.
fn beginning(path: &Path) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    let is_file = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file());
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(MOST_BYTES as u64).read_to_end(&mut bytes));
    if !is_file || read.is_err() || bytes.contains(&0) {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
