//! What a session knows besides its messages.

use std::sync::Arc;

use haft_store::StoreError;
use haft_types::ConversationId;

use super::children::Children;
use super::marks::StoredMarks;
use super::notes::StoredNotes;
use super::transcript::StoredTranscript;
use super::useful::StoredUseful;
use crate::session::config::{SessionConfig, SharedServices};
use crate::stored_state::StoredState;

/// The ports of one session that the reminders and tools share.
pub(crate) struct Knowledge {
    pub(crate) useful: Arc<StoredUseful>,
    pub(crate) notes: Arc<StoredNotes>,
    pub(crate) marks: Arc<StoredMarks>,
    pub(crate) transcript: Arc<StoredTranscript>,
    pub(crate) children: Arc<Children>,
}

/// What a sub-agent knows together with the agent that started it.
#[derive(Clone)]
pub(crate) struct SharedKnowledge {
    pub(crate) useful: Arc<StoredUseful>,
    pub(crate) notes: Arc<StoredNotes>,
}

impl Knowledge {
    /// What is kept with the conversation, and with its project, which is read here; but for what
    /// is shared.
    pub(crate) async fn open(
        services: &SharedServices,
        config: &SessionConfig,
        conversation: &ConversationId,
        shared: Option<&SharedKnowledge>,
        state: &mut StoredState,
    ) -> Result<Self, StoreError> {
        let store = || Arc::clone(&services.store);
        let SharedKnowledge { useful, notes } = if let Some(shared) = shared {
            shared.clone()
        } else {
            let root = config.folders.workspace.root.clone();
            let notes = StoredNotes::open(
                store(),
                &config.knowledge.notes,
                root,
                Arc::clone(&services.clock),
            )
            .await?;
            let useful = StoredUseful::restored(store(), conversation.clone(), state);
            SharedKnowledge {
                useful: Arc::new(useful),
                notes: Arc::new(notes),
            }
        };
        let children = Arc::new(Children::restored(store(), conversation.clone(), state));
        let marks = Arc::new(StoredMarks::restored(store(), conversation.clone(), state));
        let transcript = StoredTranscript {
            store: store(),
            conversation: conversation.clone(),
            counter: Arc::clone(&services.counter),
            marks: Arc::clone(&marks),
            children: Some(Arc::clone(&children)),
        };
        Ok(Self {
            useful,
            notes,
            marks,
            transcript: Arc::new(transcript),
            children,
        })
    }

    /// What sub-agents know of it.
    pub(crate) fn shared(&self) -> SharedKnowledge {
        SharedKnowledge {
            useful: Arc::clone(&self.useful),
            notes: Arc::clone(&self.notes),
        }
    }
}
