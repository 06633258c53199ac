//! Sub-agents: named roles that work for a session, each in a session of its own.
//!
//! A sub-agent is a [`Session`](crate::Session) like any other: own window, role, tools, model and
//! limits, its messages in a conversation of its own that names parent and call. What it shares
//! with whoever started it is in [`ParentSession`].
//!
//! Invariant: nothing of a sub-agent's messages enters the starting conversation but the result of
//! the call; its conversation has an id that follows from the call, so that after a crash everybody
//! can see how far it came.

mod background;
mod child;
mod evidence;
mod parent;
mod relay;
mod roster;
mod shared_budget;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use haft_project::agents::{self, AgentDefinition};
use haft_project::{KnowledgePaths, NamedItems};
use haft_text::Masker;
use haft_tool::{
    AgentReport, Assignment, CaseDocument, StartedAgent, SubAgents, ToolContext, UnknownAgent,
    WorkOrder,
};
use haft_types::{ConversationId, Hasher, MessageId};
use tracing::info;

use crate::event_log;
use crate::hub;
use crate::session::KnowledgeSettings;

use background::BackgroundAgents;
use child::ChildStart;
pub(crate) use evidence::evidence;
pub(crate) use parent::{ParentLink, ParentSession, Rank};
pub(crate) use relay::Relayed;
pub use shared_budget::SharedBudget;
pub(crate) use shared_budget::{RequestQuote, Reservation};

/// Agents that are about to start, and who starts them.
type PreparedAgents = (Arc<ParentSession>, Vec<ChildStart>);

/// The agents a session can start.
pub(crate) struct SubagentRoster {
    paths: KnowledgePaths,
    /// Those that come from no file.
    given: Vec<AgentDefinition>,
    masker: Masker,
    found: NamedItems<AgentDefinition>,
    parent: OnceLock<Arc<ParentSession>>,
    now: Mutex<ParentProgress>,
    /// Those that work while the session goes on.
    pub(crate) background: tokio::sync::Mutex<BackgroundAgents>,
}

/// What the session is at when it starts them.
#[derive(Clone, Default)]
pub(crate) struct ParentProgress {
    /// The reply that holds the call.
    pub(crate) reply: Option<MessageId>,
    /// The model the session asks.
    pub(crate) model: String,
    /// How many replies it may still have.
    pub(crate) turns: Option<u32>,
    /// How long it may still run.
    pub(crate) time: Option<Duration>,
}

impl SubagentRoster {
    /// Looks for agents; none when there are none.
    pub(crate) fn look(knowledge: &KnowledgeSettings, masker: &Masker) -> Option<Arc<Self>> {
        let KnowledgeSettings {
            paths,
            agents: given,
            ..
        } = knowledge;
        // What is wrong with one is shown by `haft agents list`.
        let mut problems = Vec::new();
        let found = agents::load_after(given, paths, &mut problems);
        event_log::log_problems("agent skipped", &problems);
        for shadowed in &found.shadowed {
            info!(name = shadowed.name, path = %shadowed.path.display(), reason = "its name is taken", "agent skipped");
        }
        if !found.items.is_empty() {
            let names: Vec<_> = found
                .items
                .iter()
                .map(|agent| agent.name.as_str())
                .collect();
            info!(names = names.join(", "), "agents loaded");
        }
        if found.items.is_empty() {
            return None;
        }
        let paths = paths.clone();
        let given = given.clone();
        let masker = masker.clone();
        Some(Arc::new(Self {
            paths,
            given,
            masker,
            found,
            parent: OnceLock::new(),
            now: Mutex::default(),
            background: tokio::sync::Mutex::default(),
        }))
    }

    /// What the model reads of them in advance.
    pub(crate) fn listed(&self) -> CaseDocument {
        roster::listed(&self.found.items, &self.masker)
    }

    /// Says what sub-agents have from the session; before this none can be started.
    pub(crate) fn settle(&self, parent: ParentSession) {
        // A roster is settled once, when its session is opened.
        drop(self.parent.set(Arc::new(parent)));
    }

    /// Notes what the session is at.
    pub(crate) fn note(&self, now: ParentProgress) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// The agent as its file says now.
    fn find(&self, name: &str) -> Option<AgentDefinition> {
        agents::load_after(&self.given, &self.paths, &mut Vec::new())
            .get(name)
            .cloned()
    }

    /// Everything a call starts; none where no turn runs. With more than one at a time, all are
    /// there before the first one speaks.
    fn prepare(
        &self,
        context: &ToolContext,
        order: WorkOrder,
        work: &[Assignment],
    ) -> Result<Option<PreparedAgents>, UnknownAgent> {
        let mut found = Vec::with_capacity(work.len());
        for one in work {
            let unknown = || UnknownAgent {
                name: one.name.clone(),
                names: self.names(),
            };
            found.push(self.find(&one.name).ok_or_else(unknown)?);
        }
        let now = self
            .now
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some((parent, reply)) = self.parent.get().zip(now.reply) else {
            return Ok(None);
        };
        let longest = Duration::from_secs(parent.running.limits().agent_seconds);
        let names = running_names(work, &parent.hub.names());
        let starts = work.iter().zip(found).zip(names).enumerate().map(
            |(index, ((assignment, agent), running_as))| {
                let mailbox = (order != WorkOrder::Serial)
                    .then(|| parent.hub.register(&running_as, &agent.role));
                let waiting = (order != WorkOrder::Background).then(|| parent.config.agent.clone());
                ChildStart {
                    agent,
                    assignment: assignment.clone(),
                    running_as,
                    mailbox,
                    conversation: child_id(&parent.conversation, reply, &context.call_id, index),
                    call_id: context.call_id.clone(),
                    waiting,
                    model: now.model.clone(),
                    turns: now.turns,
                    time: now.time.map_or(longest, |left| left.min(longest)),
                    history: Arc::clone(&context.history),
                    cancel: context.cancel.child_token(),
                }
            },
        );
        Ok(Some((Arc::clone(parent), starts.collect())))
    }
}

/// The conversation of the `index`-th sub-agent of a call.
pub(crate) fn child_id(
    parent: &ConversationId,
    reply: MessageId,
    call_id: &str,
    index: usize,
) -> ConversationId {
    let mut hasher = Hasher::default();
    hasher
        .update(parent.as_str().as_bytes())
        .update(reply.to_string().as_bytes());
    hasher
        .update(call_id.as_bytes())
        .update(&index.to_le_bytes());
    ConversationId::new(MessageId::derived(hasher.finish()).to_string())
}

/// The names agents run under: one that somebody has already gets a number.
pub(crate) fn running_names(work: &[Assignment], taken: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(work.len());
    for one in work {
        let numbered = (2..).map(|number: u32| format!("{}-{number}", one.name));
        let free = |name: &String| !names.contains(name) && !taken.contains(name);
        let name = std::iter::once(one.name.clone()).chain(numbered).find(free);
        names.extend(name);
    }
    names
}

#[async_trait]
impl SubAgents for SubagentRoster {
    fn names(&self) -> Vec<String> {
        self.found
            .items
            .iter()
            .map(|agent| agent.name.clone())
            .collect()
    }

    async fn run(
        &self,
        context: &ToolContext,
        order: WorkOrder,
        work: Vec<Assignment>,
    ) -> Result<Vec<AgentReport>, UnknownAgent> {
        let Some((parent, starts)) = self.prepare(context, order, &work)? else {
            let why = "sub-agents can only be started by a running turn";
            return Ok(work
                .iter()
                .map(|one| child::refused(&one.name, "not_running", why))
                .collect());
        };
        let at_once = if order == WorkOrder::Serial {
            1
        } else {
            hub::at_once()
        };
        let children = starts
            .into_iter()
            .map(|start| child::run(Arc::clone(&parent), start));
        Ok(futures::stream::iter(children)
            .buffered(at_once)
            .collect()
            .await)
    }

    async fn start(
        &self,
        context: &ToolContext,
        work: Vec<Assignment>,
    ) -> Result<Vec<StartedAgent>, UnknownAgent> {
        let Some((parent, starts)) = self.prepare(context, WorkOrder::Background, &work)? else {
            return Ok(Vec::new());
        };
        let mut background = self.background.lock().await;
        Ok(starts
            .into_iter()
            .map(|start| background.start(&parent, start))
            .collect())
    }
}
