//! The TODO list of a conversation.

use std::sync::Arc;

use async_trait::async_trait;
use haft_store::Store;
use haft_tool::{TodoItem, TodoList, TodoState};
use haft_types::ConversationId;

use super::document::KeptDocument;
use crate::stored_state::{StoredState, TodoItems};

/// The stored TODO list of a conversation.
pub(crate) struct StoredTodo(KeptDocument<TodoItems>);

impl StoredTodo {
    pub(crate) fn restored(
        store: Arc<dyn Store>,
        conversation: ConversationId,
        state: &mut StoredState,
    ) -> Self {
        Self(KeptDocument::restored(store, conversation, state))
    }

    /// Returns the items, from memory.
    pub(crate) fn items(&self) -> Vec<TodoItem> {
        self.0.copy().0
    }

    /// Returns the number of items that are not completed. A list that cannot be parsed counts as
    /// empty: the tools report the error.
    pub(crate) async fn open_items(&self) -> usize {
        self.read()
            .await
            .unwrap_or_default()
            .iter()
            .filter(|item| item.status != TodoState::Completed)
            .count()
    }
}

#[async_trait]
impl TodoList for StoredTodo {
    async fn read(&self) -> Result<Vec<TodoItem>, String> {
        self.0
            .read()
            .await
            .map(|list| list.0)
            .map_err(|error| error.to_string())
    }

    async fn write(&self, items: Vec<TodoItem>) -> Result<(), String> {
        self.0
            .replace(TodoItems(items))
            .await
            .map_err(|error| error.to_string())
    }
}
