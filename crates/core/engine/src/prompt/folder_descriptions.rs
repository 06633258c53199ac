//! Updates the descriptions of folders after a turn that changed files.
//!
//! Invariant: if a description can't be written, the user gets a warning and nothing changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haft_context::{ChangedFile, FolderChange, build_folder_description_request};
use haft_project::active_context;
use haft_types::{ChangeKind, ModelSpec, Outcome, PermissionMode, Role, TokenCounter};

use crate::error::EngineError;
use crate::request::compact::SideText;
use crate::session::Session;
use crate::turn::turn_io::TurnIo;

/// The maximum number of folders described after one turn.
const MAX_FOLDERS: usize = 8;
/// The maximum number of files per folder whose content is sent to the model.
const MAX_FILES: usize = 10;
/// The maximum number of bytes of each file that are sent to the model.
const MAX_BYTES: usize = 4 * 1024;
/// The maximum number of file names listed for a folder.
const MAX_NAMES: usize = 100;
/// The maximum length, in characters, of the user's task and of the model's answer in a request.
const MAX_CHARACTERS: usize = 2_000;

impl Session {
    /// Stores the descriptions that the next request contains.
    pub(crate) async fn store_descriptions(&mut self) -> Result<(), EngineError> {
        if !self.config.policy.active {
            return Ok(());
        }
        if let Some(text) = self.prompt.active.unsaved() {
            self.transcript.store_state(&text).await?;
            self.prompt.active.mark_saved();
        }
        Ok(())
    }

    /// Updates the descriptions of the folders in which the turn changed files.
    pub(crate) async fn describe_changed_folders(&mut self, outcome: Outcome, io: &mut TurnIo<'_>) {
        let mut changed = self.prompt.active.take_changed();
        let wanted = match outcome {
            Outcome::Completed | Outcome::Waiting => true,
            // After an incomplete turn, the user should neither wait nor pay for descriptions.
            Outcome::Aborted | Outcome::Exhausted | Outcome::Failed => false,
        };
        let may_write = self.config.knowledge.paths.trusted && self.mode() != PermissionMode::Plan;
        if !self.config.policy.active || !wanted || !may_write {
            return;
        }
        changed.retain(|folder, _| self.config.knowledge.paths.root.join(folder).is_dir());
        let until = Instant::now() + Duration::from_secs(self.config.policy.summary_timeout.into());
        for (folder, files) in changed.into_iter().take(MAX_FOLDERS) {
            let left = until.saturating_duration_since(Instant::now());
            if let Err(why) = self.describe_folder(&folder, &files, left, io).await {
                let folder = if folder.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    &folder
                };
                let message = format!(
                    "the description of `{}` was not brought up to date: {why}",
                    folder.display()
                );
                io.emit_error("active_context", message);
            }
        }
    }

    async fn describe_folder(
        &mut self,
        folder: &Path,
        files: &BTreeMap<PathBuf, ChangeKind>,
        limit: Duration,
        io: &mut TurnIo<'_>,
    ) -> Result<(), String> {
        let masker = self.config.safety.masker.clone();
        let masked = |text: &str| masker.mask(text).into_owned();
        let paths = self.config.knowledge.paths.clone();
        let before = active_context::load_descriptions(&paths, &mut Vec::new())
            .into_iter()
            .find(|one| one.folder == folder);
        let before = before.map(|one| masked(&one.text));
        let names = list_file_names(&paths.root.join(folder));
        let shown: Vec<_> = files
            .iter()
            .take(MAX_FILES)
            .map(|(path, kind)| ChangedFile {
                path: path.display().to_string(),
                change: describe_change_kind(*kind),
                text: masked(&read_file_start(&paths.root.join(path))),
            })
            .collect();
        let newest = |role| self.transcript.newest_text(role, MAX_CHARACTERS);
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
            build_folder_description_request(&change, language, by, counter)
        };
        let made = self
            .ask_side_model(SideText::FolderDescription, &request, limit, io)
            .await?;
        io.emit(made.usage_event());
        let text = made.complete_text().map_err(|why| why.to_string())?;
        active_context::write_description(&paths, folder, &masked(&text))
            .map_err(|error| error.to_string())
    }
}

fn describe_change_kind(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
    }
}

fn list_file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names.truncate(MAX_NAMES);
    names
}

/// Returns the start of a text file, or an empty text if `path` is not a text file.
fn read_file_start(path: &Path) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    let is_file = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file());
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES as u64).read_to_end(&mut bytes));
    if !is_file || read.is_err() || bytes.contains(&0) {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
