//! Stores decisions and the texts of cleared results, one folder for each conversation.
//!
//! A decision is on disk before the first request that it changes is sent, so a restart changes
//! nothing. The files with the texts can be written again from any later request, which contains the
//! results.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use haft_files::{Durability, create_folder, read_text, replace_file};
use haft_types::ConversationId;
use serde::{Deserialize, Serialize};

use super::moved_text::MovedText;
use super::plan::ClearingPass;

const DECISIONS_FILE: &str = "decisions.json";
const MOVED_TEXTS_FILE: &str = "moved-texts.json";
/// The file that names the recorded conversation, with which the folder is removed.
const CONVERSATION_FILE: &str = "conversation";
/// The maximum size of a file of decisions.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The decisions about a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConversationDecisions {
    pub(crate) agent: String,
    /// The folder with the texts of the cleared results.
    pub(crate) texts: PathBuf,
    pub(crate) passes: Vec<ClearingPass>,
}

/// The folder with the decisions about all conversations.
#[derive(Clone, Debug)]
pub(crate) struct DecisionStore {
    folder: PathBuf,
}

impl DecisionStore {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Loads all decisions, with the names of their folders. A file that cannot be parsed belongs to
    /// no conversation any more.
    pub(crate) fn load(&self) -> Vec<(String, ConversationDecisions)> {
        list_folders(&self.folder)
            .into_iter()
            .filter_map(|folder| {
                let name = folder.file_name()?.to_string_lossy().into_owned();
                Some((name, load_decisions(&folder)?))
            })
            .collect()
    }

    pub(crate) fn load_moved_texts(&self) -> Vec<MovedText> {
        let text = read_text(&self.folder.join(MOVED_TEXTS_FILE), MAX_FILE_BYTES);
        text.ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// Stores the decisions about a conversation. They survive a power cut when this returns.
    pub(crate) fn store(&self, name: &str, decisions: &ConversationDecisions) -> io::Result<()> {
        let text = serde_json::to_vec(decisions)?;
        let path = self.folder.join(name).join(DECISIONS_FILE);
        replace_file(&path, &text, Durability::PowerCut)
    }

    pub(crate) fn store_moved_texts(&self, texts: &[MovedText]) -> io::Result<()> {
        let text = serde_json::to_vec(texts)?;
        let path = self.folder.join(MOVED_TEXTS_FILE);
        replace_file(&path, &text, Durability::PowerCut)
    }

    /// Notes the recorded conversation to which a folder belongs.
    pub(crate) fn link(&self, name: &str, conversation: &ConversationId) -> io::Result<()> {
        let path = self.folder.join(name).join(CONVERSATION_FILE);
        if path.exists() {
            return Ok(());
        }
        replace_file(&path, conversation.as_str().as_bytes(), Durability::Process)
    }
}

/// Writes the text of a cleared result.
pub(crate) fn write_text(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        create_folder(folder)?;
    }
    replace_file(file, text.as_bytes(), Durability::Process)
}

fn list_folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    folders
}

fn load_decisions(folder: &Path) -> Option<ConversationDecisions> {
    let text = read_text(&folder.join(DECISIONS_FILE), MAX_FILE_BYTES).ok()?;
    serde_json::from_str(&text).ok()
}

/// Removes the decisions and texts of recorded conversations for which `is_gone` returns true.
pub fn remove_saved_texts(folder: &Path, is_gone: impl Fn(&str) -> bool) -> io::Result<()> {
    for folder in list_folders(folder) {
        let Ok(id) = fs::read_to_string(folder.join(CONVERSATION_FILE)) else {
            continue;
        };
        if !is_gone(&id) {
            continue;
        }
        if let Some(decisions) = load_decisions(&folder)
            && decisions.texts.is_dir()
        {
            fs::remove_dir_all(&decisions.texts)?;
        }
        if folder.is_dir() {
            fs::remove_dir_all(&folder)?;
        }
    }
    Ok(())
}
