//! The traits through which tools reach what the engine keeps.

use std::path::Path;

use async_trait::async_trait;
use haft_types::ContentHash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a TODO item has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

/// One item of a TODO list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoItem {
    /// What is to be done, in a few words.
    pub content: String,
    /// How far it has come.
    pub status: TodoState,
}

/// The TODO list of a conversation.
#[async_trait]
pub trait TodoList: Send + Sync {
    /// All items, in order.
    async fn read(&self) -> Result<Vec<TodoItem>, String>;

    /// Replaces the list. When it returns, the list is stored.
    async fn write(&self, items: Vec<TodoItem>) -> Result<(), String>;
}

/// What a file looked like when it was last read or written by haft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Its size in bytes.
    pub size: u64,
    /// Its modification time in nanoseconds.
    pub mtime_ns: i64,
    /// The hash of its content: this decides whether it changed.
    pub hash: ContentHash,
}

/// Remembers what files looked like, so that an edit never overwrites what it has not seen.
pub trait ReadLedger: Send + Sync {
    /// The file as it was last read or written in this conversation.
    fn last_seen(&self, path: &Path) -> Option<FileState>;

    /// Notes how the file looks now.
    fn saw(&self, path: &Path, state: FileState);
}
