//! What a session knows besides its messages.

use std::sync::Arc;

use haft_store::StoreError;
use haft_types::ConversationId;

use super::{StoredMarks, StoredNotes, StoredTranscript, StoredUseful};
use crate::session::{Services, SessionConfig};

/// The ports of one session that the reminders and tools share.
pub(crate) struct Knowledge {
    pub(crate) useful: Arc<StoredUseful>,
    pub(crate) notes: Arc<StoredNotes>,
    pub(crate) marks: Arc<StoredMarks>,
    pub(crate) transcript: Arc<StoredTranscript>,
}

impl Knowledge {
    /// Reads what is kept with the conversation and its project.
    pub(crate) async fn open(
        services: &Services,
        config: &SessionConfig,
        conversation: &ConversationId,
    ) -> Result<Self, StoreError> {
        let store = || Arc::clone(&services.store);
        let root = config.workspace.root.clone();
        let notes = StoredNotes::open(store(), &config.namespace, root, Arc::clone(&services.clock)).await?;
        let marks = Arc::new(StoredMarks::open(store(), conversation.clone()).await?);
        let transcript = StoredTranscript {
            store: store(),
            conversation: conversation.clone(),
            counter: Arc::clone(&services.counter),
            marks: Arc::clone(&marks),
        };
        Ok(Self {
            useful: Arc::new(StoredUseful::open(store(), conversation.clone()).await?),
            notes: Arc::new(notes),
            marks,
            transcript: Arc::new(transcript),
        })
    }
}
