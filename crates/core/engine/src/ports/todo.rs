//! The TODO list, kept with the conversation.

use std::sync::Arc;

use async_trait::async_trait;
use haft_store::{Store, StoreError};
use haft_tool::{TodoItem, TodoList, TodoState};
use haft_types::ConversationId;

use super::document::{Document, Owner};

/// The TODO list of a conversation.
pub(crate) struct StoredTodo(Document<Vec<TodoItem>>);

/// Under which name the list is stored.
const KEY: &str = "todo";

impl StoredTodo {
    pub(crate) async fn open(store: Arc<dyn Store>, conversation: ConversationId) -> Result<Self, StoreError> {
        Document::open(store, Owner::Conversation(conversation), KEY).await.map(Self)
    }

    /// The items, from memory.
    pub(crate) fn items(&self) -> Vec<TodoItem> {
        self.0.copy()
    }

    /// Whether an item is not done. A list that cannot be read counts as empty: the tools report the error.
    pub(crate) async fn has_open_items(&self) -> bool {
        self.read().await.is_ok_and(|items| items.iter().any(|item| item.status != TodoState::Completed))
    }
}

#[async_trait]
impl TodoList for StoredTodo {
    async fn read(&self) -> Result<Vec<TodoItem>, String> {
        self.0.read().await.map_err(|error| error.to_string())
    }

    async fn write(&self, items: Vec<TodoItem>) -> Result<(), String> {
        self.0.replace(items).await.map_err(|error| error.to_string())
    }
}
