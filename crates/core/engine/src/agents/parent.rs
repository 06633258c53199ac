//! The values that sub-agents inherit from the session that starts them.

use std::sync::Arc;

use futures::future::BoxFuture;
use haft_tool::{AgentReport, ChangeWatch, ReadLedger, WorkPlace};
use haft_tools::{Running, StoredTodo};
use haft_types::{ConversationId, Event};
use tokio::sync::mpsc::UnboundedSender;

use super::child_start::ChildStart;
use super::hub::{Company, Mailbox};
use super::sibling_gate::{SiblingGate, SiblingPlace};
use crate::calls::permit::Permit;
use crate::hooks::HookRunner;
use crate::ports::{Children, SharedKnowledge};
use crate::prompt::prompt_copy::PromptCopy;
use crate::session::config::{SessionConfig, SharedServices};
use crate::stored_state::StoredState;

/// Distinguishes the main session from the sessions of sub-agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// The session that the user talks to.
    Main,
    /// A session that another session started.
    Sub,
}

/// The type of the function that opens and runs one sub-agent.
pub(crate) type RunChild = fn(Arc<ParentSession>, ChildStart) -> BoxFuture<'static, AgentReport>;

/// Everything that sub-agents inherit from the session that starts them.
pub(crate) struct ParentSession {
    /// Runs a sub-agent. A function pointer, so that the roster, which is part of a session,
    /// doesn't depend on the code that opens sessions.
    pub(crate) run_child: RunChild,
    pub(crate) config: SessionConfig,
    pub(crate) conversation: ConversationId,
    pub(crate) shared: Arc<SharedServices>,
    /// The running programs of the starting session, from which the sub-agent's own set is created.
    pub(crate) running: Arc<Running>,
    pub(crate) children: Arc<Children>,
    pub(crate) inherited: Inherited,
    pub(crate) events: UnboundedSender<Event>,
    /// Orders the first requests of sub-agents with equal first bytes.
    pub(crate) gate: Arc<SiblingGate>,
    /// Held while a sub-agent's copy of the project is created or merged.
    pub(crate) merge_lock: tokio::sync::Mutex<()>,
}

/// The state that a session shares with its sub-agents.
#[derive(Clone)]
pub(crate) struct Inherited {
    pub(crate) todo: Arc<StoredTodo>,
    /// The files that the starting session has read. A sub-agent also gets the notes on the folders
    /// of these files. `None` in the main session.
    pub(crate) starter_reads: Option<Arc<ReadLedger>>,
    pub(crate) knowledge: SharedKnowledge,
    pub(crate) permit: Arc<Permit>,
    pub(crate) recorded: Arc<dyn ChangeWatch>,
}

impl Inherited {
    /// Creates the state of a main session.
    pub(crate) fn new(
        config: &SessionConfig,
        services: &SharedServices,
        hooks: &HookRunner,
        conversation: &ConversationId,
        knowledge: SharedKnowledge,
        state: &mut StoredState,
    ) -> Self {
        let todo = StoredTodo::new(state.take_kept_document(&services.store, conversation));
        let workspace = &config.folders.workspace;
        let permit = Permit::new(
            config.safety.permissions.clone(),
            hooks.wrap_approver(config.task.approver.clone()),
            workspace.clone(),
        );
        let permit = permit
            .with_shared_state(Arc::clone(&config.safety.shared))
            .for_agent(&config.agent, workspace.clone());
        Self {
            todo: Arc::new(todo),
            starter_reads: None,
            knowledge,
            permit: Arc::new(permit),
            recorded: open_change_record(config, services, conversation),
        }
    }

    /// Returns the state for a sub-agent of `parent`. A sub-agent that works in a copy of the
    /// project has its own record of changes, because its changes reach the project only when the
    /// copy is merged.
    pub(crate) fn from_parent(
        parent: &ParentSession,
        config: &SessionConfig,
        conversation: &ConversationId,
        place: WorkPlace,
    ) -> Self {
        let Self {
            todo,
            starter_reads,
            knowledge,
            permit,
            recorded,
        } = parent.inherited.clone();
        let permit = permit.for_agent(&config.agent, config.folders.workspace.clone());
        Self {
            todo,
            starter_reads,
            knowledge,
            permit: Arc::new(permit),
            recorded: match place {
                WorkPlace::Project => recorded,
                WorkPlace::Worktree => open_change_record(config, &parent.shared, conversation),
            },
        }
    }
}

fn open_change_record(
    config: &SessionConfig,
    services: &SharedServices,
    conversation: &ConversationId,
) -> Arc<dyn ChangeWatch> {
    let folders = &config.folders;
    services
        .changes
        .open_record(conversation, &folders.workspace, &folders.private)
}

/// The values with which a sub-agent is opened, in addition to its configuration and services.
pub(crate) struct ParentLink {
    pub(crate) inherited: Inherited,
    pub(crate) mailbox: Mailbox,
    /// The agent that waits for the sub-agent, and therefore reads no messages meanwhile.
    pub(crate) waiting: Option<String>,
    pub(crate) company: Company,
    /// The prompt that a fork copies; `None` for other agents.
    pub(crate) copied: Option<Arc<PromptCopy>>,
    pub(crate) sibling: Sibling,
}

/// The facts that sub-agents with equal first bytes share.
pub(crate) struct Sibling {
    /// The key by which providers route the requests to one cache.
    pub(crate) cache_key: String,
    /// The place among the sub-agents that wait for the first one; `None` if the first bytes are in
    /// the cache already.
    pub(crate) place: Option<SiblingPlace>,
}

/// Returns the namespace of sub-agents' conversations. A namespace of their own prevents these
/// conversations from becoming the current conversation of the project.
pub(crate) fn child_namespace(namespace: &str) -> String {
    format!("{namespace}#agents")
}
