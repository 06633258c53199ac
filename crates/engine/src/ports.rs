//! The engine's side of the ports through which tools reach the conversation.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use haft_store::Store;
use haft_tool::{FileState, ReadLedger, TodoItem, TodoList, TodoState};
use haft_types::{ConversationId, Entry};
use serde::Deserialize;

/// The TODO list, kept with the conversation in the store.
pub(crate) struct StoredTodo {
    store: Arc<dyn Store>,
    conversation: ConversationId,
}

/// Under which name the list is stored.
const TODO: &str = "todo";

impl StoredTodo {
    pub(crate) fn new(store: Arc<dyn Store>, conversation: ConversationId) -> Self {
        Self { store, conversation }
    }

    /// Whether an item is not done. A list that cannot be read counts as empty: the tools report the error.
    pub(crate) async fn has_open_items(&self) -> bool {
        self.read().await.is_ok_and(|items| items.iter().any(|item| item.status != TodoState::Completed))
    }
}

#[async_trait]
impl TodoList for StoredTodo {
    async fn read(&self) -> Result<Vec<TodoItem>, String> {
        let stored = self.store.state(&self.conversation, TODO).await.map_err(|error| error.to_string())?;
        stored.map_or(Ok(Vec::new()), |value| serde_json::from_value(value).map_err(|error| error.to_string()))
    }

    async fn write(&self, items: Vec<TodoItem>) -> Result<(), String> {
        let value = serde_json::to_value(items).map_err(|error| error.to_string())?;
        self.store.set_state(&self.conversation, TODO, value).await.map_err(|error| error.to_string())
    }
}

/// What files looked like when they were last read or written, in memory; the results in the store bring it back.
#[derive(Default)]
pub(crate) struct Reads(Mutex<HashMap<PathBuf, FileState>>);

/// What a result says about a file, under `context.file`.
#[derive(Deserialize)]
struct SeenFile {
    path: PathBuf,
    #[serde(flatten)]
    state: FileState,
}

impl Reads {
    /// The ledger as it was when the newest of these messages was stored.
    pub(crate) fn from_history(history: &[Arc<Entry>]) -> Self {
        let seen = history
            .iter()
            .flat_map(|entry| entry.message.tool_results())
            .filter_map(|result| SeenFile::deserialize(result.envelope.context.get("file")?).ok())
            .map(|file| (file.path, file.state));
        Self(Mutex::new(seen.collect()))
    }
}

impl ReadLedger for Reads {
    fn last_seen(&self, path: &Path) -> Option<FileState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied()
    }

    fn saw(&self, path: &Path, state: FileState) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), state);
    }
}
