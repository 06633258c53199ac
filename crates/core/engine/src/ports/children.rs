//! The conversations of the sub-agents that a conversation has started.

use haft_tool::PortError;
use haft_tools::KeptDocument;

use crate::stored_state::{ChildConversation, ChildConversations};

/// The sub-agents' conversations, oldest first.
pub(crate) struct Children(KeptDocument<ChildConversations>);

impl Children {
    pub(crate) fn new(document: KeptDocument<ChildConversations>) -> Self {
        Self(document)
    }

    /// Returns all conversations of sub-agents, from memory.
    pub(crate) fn all(&self) -> Vec<ChildConversation> {
        self.0.copy().0
    }

    /// Returns the newest sub-agent conversation whose id starts with `id`.
    pub(crate) fn find(&self, id: &str) -> Option<ChildConversation> {
        self.all()
            .into_iter()
            .rev()
            .find(|child| child.conversation.as_str().starts_with(id))
    }

    pub(crate) async fn add(&self, child: ChildConversation) -> Result<(), PortError> {
        let add = |list: &mut ChildConversations| {
            list.0.push(child.clone());
            Ok(())
        };
        self.0.edit(add).await
    }
}
