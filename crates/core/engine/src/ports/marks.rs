//! The marks on messages of a conversation.

use std::sync::Arc;

use haft_context::Marks;
use haft_store::{Store, StoreError};
use haft_tool::PortError;
use haft_tools::{DocumentOwner, KeptDocument};
use haft_types::{ConversationId, Entry, MarkAction, MarkReport};

use crate::stored_state::StateDocument;

/// The marks on messages of a conversation, stored with the conversation.
pub struct StoredMarks(KeptDocument<Marks>);

impl StoredMarks {
    /// Loads the marks of a conversation.
    pub async fn open(
        store: Arc<dyn Store>,
        conversation: ConversationId,
    ) -> Result<Self, StoreError> {
        let owner = DocumentOwner::Conversation(conversation);
        KeptDocument::open(store, owner, Marks::KEY).await.map(Self)
    }

    /// Creates the marks from the stored document that holds them.
    pub(crate) fn new(document: KeptDocument<Marks>) -> Self {
        Self(document)
    }

    /// Returns the marks that apply to the next request, from memory.
    pub fn current(&self) -> Marks {
        self.0.copy()
    }

    /// Edits the list of deleted messages. `ids` are short or full ids, separated by commas.
    pub async fn edit_deleted(
        &self,
        action: MarkAction,
        ids: &str,
        history: &[Arc<Entry>],
    ) -> Result<MarkReport, PortError> {
        self.0
            .edit(|marks: &mut Marks| Ok(marks.edit_deleted(action, ids, history)))
            .await
    }
}
