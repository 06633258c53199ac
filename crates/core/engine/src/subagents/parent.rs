//! What sub-agents have from the session that starts them.

use std::sync::Arc;

use haft_store::Store;
use haft_tool::{ChangeRecords, ChangeWatch};
use haft_tools::{ProjectCopies, Running};
use haft_types::{Clock, ConversationId, Event, IdSource, TokenCounter};
use tokio::sync::mpsc::UnboundedSender;

use super::shared_budget::SharedBudget;
use crate::hub::{Hub, Mailbox};
use crate::permit::Permit;
use crate::ports::{Children, Reads, SharedKnowledge, StoredTodo};
use crate::session::{ModelOpener, SessionConfig};

/// Whose session it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// The one the user talks to.
    Main,
    /// One that another started.
    Sub,
}

/// What a session gives to each of its sub-agents.
pub(crate) struct ParentSession {
    pub(crate) config: SessionConfig,
    pub(crate) conversation: ConversationId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) changes: Arc<dyn ChangeRecords>,
    pub(crate) copies: Option<Arc<dyn ProjectCopies>>,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) models: ModelOpener,
    pub(crate) hub: Arc<Hub>,
    /// Only to make another of its kind: what a sub-agent has running is its own.
    pub(crate) running: Arc<Running>,
    pub(crate) todo: Arc<StoredTodo>,
    /// The files it has read: notes on their folders go to those it starts.
    pub(crate) reads: Arc<Reads>,
    pub(crate) knowledge: SharedKnowledge,
    pub(crate) children: Arc<Children>,
    pub(crate) permit: Arc<Permit>,
    pub(crate) recorded: Arc<dyn ChangeWatch>,
    pub(crate) budget: SharedBudget,
    pub(crate) events: UnboundedSender<Event>,
    /// Held while the work of one is merged into the project.
    pub(crate) merging: tokio::sync::Mutex<()>,
}

/// What one sub-agent has from its parent, besides its configuration and services.
pub(crate) struct ParentLink {
    pub(crate) todo: Arc<StoredTodo>,
    pub(crate) reads: Arc<Reads>,
    pub(crate) knowledge: SharedKnowledge,
    pub(crate) permit: Arc<Permit>,
    /// The change record of whoever started it; its own where it works elsewhere.
    pub(crate) recorded: Option<Arc<dyn ChangeWatch>>,
    pub(crate) budget: SharedBudget,
    pub(crate) mailbox: Mailbox,
    /// Who waits for it, and so reads nothing.
    pub(crate) waiting: Option<String>,
}

/// The namespace of sub-agents' conversations: beside those of the project, and never the current
/// one.
pub(crate) fn child_namespace(namespace: &str) -> String {
    format!("{namespace}#agents")
}
