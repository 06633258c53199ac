//! The stored knowledge of a session besides its messages: useful ranges, notes, marks, and
//! sub-agents' conversations.

use std::sync::Arc;

use haft_store::{Store, StoreError};
use haft_types::{Clock, ConversationId, TokenCounter};

use super::children::Children;
use super::marks::StoredMarks;
use super::notes::StoredNotes;
use super::transcript::StoredTranscript;
use super::useful::StoredUseful;
use crate::session::config::SessionConfig;
use crate::stored_state::StoredState;

/// The knowledge of one session, shared by reminders and tools.
pub(crate) struct Knowledge {
    pub(crate) useful: Arc<StoredUseful>,
    pub(crate) notes: Arc<StoredNotes>,
    pub(crate) marks: Arc<StoredMarks>,
    pub(crate) transcript: Arc<StoredTranscript>,
    pub(crate) children: Arc<Children>,
}

/// The knowledge that sub-agents share with the agent that started them.
#[derive(Clone)]
pub(crate) struct SharedKnowledge {
    pub(crate) useful: Arc<StoredUseful>,
    pub(crate) notes: Arc<StoredNotes>,
}

/// The services that knowledge is read and written with.
#[derive(Clone, Copy)]
pub(crate) struct KnowledgeServices<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) counter: &'a Arc<dyn TokenCounter>,
    pub(crate) clock: &'a Arc<dyn Clock>,
}

impl Knowledge {
    /// Opens the knowledge of a conversation and of its project. Uses `shared` in place of reading
    /// the parts that a sub-agent shares.
    pub(crate) async fn open(
        services: KnowledgeServices<'_>,
        config: &SessionConfig,
        conversation: &ConversationId,
        shared: Option<&SharedKnowledge>,
        state: &mut StoredState,
    ) -> Result<Self, StoreError> {
        let store = || Arc::clone(services.store);
        let SharedKnowledge { useful, notes } = if let Some(shared) = shared {
            shared.clone()
        } else {
            let root = config.folders.workspace.root.clone();
            let notes = StoredNotes::open(
                store(),
                &config.knowledge.notes,
                root,
                Arc::clone(services.clock),
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
            counter: Arc::clone(services.counter),
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

    /// Returns the parts that sub-agents share.
    pub(crate) fn shared(&self) -> SharedKnowledge {
        SharedKnowledge {
            useful: Arc::clone(&self.useful),
            notes: Arc::clone(&self.notes),
        }
    }
}
