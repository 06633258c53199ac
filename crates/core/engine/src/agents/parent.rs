//! The values that sub-agents inherit from the session that starts them.

use std::sync::Arc;

use futures::future::BoxFuture;
use haft_store::Store;
use haft_tool::{AgentReport, ChangeRecords, ChangeWatch, ReadLedger};
use haft_tools::{ProjectCopies, Running, StoredTodo};
use haft_types::{Clock, ConversationId, Event, IdSource, TokenCounter};
use tokio::sync::mpsc::UnboundedSender;

use super::child_start::ChildStart;
use super::hub::{Hub, Mailbox};
use crate::budget::shared_budget::SharedBudget;
use crate::calls::permit::Permit;
use crate::ports::{Children, SharedKnowledge};
use crate::session::config::SessionConfig;
use crate::session::model_opener::ModelOpener;

/// The place of a session among agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// The session that the user talks to.
    Main,
    /// A session that another session started.
    Sub,
}

/// Opens and runs one sub-agent.
pub(crate) type RunChild = fn(Arc<ParentSession>, ChildStart) -> BoxFuture<'static, AgentReport>;

/// Everything that sub-agents inherit from the session that starts them.
pub(crate) struct ParentSession {
    /// Runs a sub-agent. It is a value so that the roster, which is a part of a session, doesn't
    /// depend on the code that opens sessions.
    pub(crate) run_child: RunChild,
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
    /// Used to create the sub-agent's own set of running programs.
    pub(crate) running: Arc<Running>,
    pub(crate) todo: Arc<StoredTodo>,
    /// The files that the session has read; notes on their folders go to its sub-agents.
    pub(crate) reads: Arc<ReadLedger>,
    pub(crate) knowledge: SharedKnowledge,
    pub(crate) children: Arc<Children>,
    pub(crate) permit: Arc<Permit>,
    pub(crate) recorded: Arc<dyn ChangeWatch>,
    pub(crate) budget: SharedBudget,
    pub(crate) events: UnboundedSender<Event>,
    /// Held while a sub-agent's work is merged into the project.
    pub(crate) merging: tokio::sync::Mutex<()>,
}

/// The values that one sub-agent inherits besides its configuration and services.
pub(crate) struct ParentLink {
    pub(crate) todo: Arc<StoredTodo>,
    pub(crate) reads: Arc<ReadLedger>,
    pub(crate) knowledge: SharedKnowledge,
    pub(crate) permit: Arc<Permit>,
    /// The change record of the parent; `None` if the sub-agent works in a copy of the project.
    pub(crate) recorded: Option<Arc<dyn ChangeWatch>>,
    pub(crate) budget: SharedBudget,
    pub(crate) mailbox: Mailbox,
    /// The name of the agent that waits for the sub-agent and so reads no messages.
    pub(crate) waiting: Option<String>,
}

/// Returns the namespace of sub-agents' conversations. It differs from the project's, so that none
/// of them becomes the current conversation.
pub(crate) fn child_namespace(namespace: &str) -> String {
    format!("{namespace}#agents")
}
