//! The TODO list of a conversation.

use haft_tool::PortError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kept_document::KeptDocument;

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

/// The TODO list in its stored form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TodoItems(pub(super) Vec<TodoItem>);

impl TodoItems {
    /// The key of the list in the store.
    pub const KEY: &str = "todo";
}

/// The TODO list of a conversation, in the store with a copy in memory.
pub struct StoredTodo(KeptDocument<TodoItems>);

impl StoredTodo {
    /// Creates the list from its stored document.
    pub fn new(document: KeptDocument<TodoItems>) -> Self {
        Self(document)
    }

    /// Returns the items in order, from memory.
    pub fn items(&self) -> Vec<TodoItem> {
        self.0.copy().0
    }

    /// Returns the number of items that are not completed. A list that cannot be read counts as
    /// empty, because the TODO tools report the error.
    pub async fn count_open_items(&self) -> usize {
        self.read()
            .await
            .unwrap_or_default()
            .iter()
            .filter(|item| item.status != TodoState::Completed)
            .count()
    }

    /// Reads the items in order, from the store.
    pub async fn read(&self) -> Result<Vec<TodoItem>, PortError> {
        Ok(self.0.read().await?.0)
    }

    /// Replaces the list. The new list is stored when this method returns.
    pub async fn write(&self, items: Vec<TodoItem>) -> Result<(), PortError> {
        self.0.replace(TodoItems(items)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pinned;

    #[test]
    fn key_and_shape_are_what_earlier_versions_stored() {
        let item = TodoItem {
            content: "test".into(),
            status: TodoState::InProgress,
        };
        assert_eq!(TodoItems::KEY, "todo");
        pinned(
            &TodoItems(vec![item]),
            r#"[{"content":"test","status":"in_progress"}]"#,
        );
    }
}
