//! The conversations of sub-agents that a conversation has started.

use std::sync::Arc;

use haft_store::{Store, StoreError};
use haft_tool::PortError;
use haft_types::ConversationId;
use serde::{Deserialize, Serialize};

use super::document::{Document, Owner};

/// Under which name the list is stored.
const KEY: &str = "subagents";

/// A sub-agent's conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Child {
    pub(crate) conversation: ConversationId,
    /// The agent's name in its file.
    pub(crate) agent: String,
    /// The call that started it.
    pub(crate) call_id: String,
}

/// The children of a conversation, oldest first.
pub(crate) struct Children(Document<Vec<Child>>);

impl Children {
    pub(crate) async fn open(store: Arc<dyn Store>, conversation: ConversationId) -> Result<Self, StoreError> {
        Document::open(store, Owner::Conversation(conversation), KEY).await.map(Self)
    }

    /// The list, from memory.
    pub(crate) fn all(&self) -> Vec<Child> {
        self.0.copy()
    }

    /// The one whose conversation has this id, or one that begins so.
    pub(crate) fn find(&self, id: &str) -> Option<Child> {
        self.all().into_iter().rev().find(|child| child.conversation.as_str().starts_with(id))
    }

    pub(crate) async fn add(&self, child: Child) -> Result<(), PortError> {
        let add = |list: &mut Vec<Child>| {
            list.push(child.clone());
            Ok(())
        };
        self.0.edit(add).await
    }
}
