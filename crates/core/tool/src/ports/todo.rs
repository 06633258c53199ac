//! The TODO list of a conversation.

use async_trait::async_trait;
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
    /// Returns all items, in order.
    async fn read(&self) -> Result<Vec<TodoItem>, String>;

    /// Replaces the list and returns once it is stored.
    async fn write(&self, items: Vec<TodoItem>) -> Result<(), String>;
}
