//! The agents that a session can start: named roles that work in sessions of their own.
//!
//! A sub-agent is a [`Session`](crate::Session) like any other, with its own context window, role,
//! tools, model and limits. Its conversation records the parent and the call. [`ParentSession`]
//! holds the values that a sub-agent inherits.
//!
//! Invariant: only the result of the call enters the parent's conversation. The id of the
//! sub-agent's conversation is derived from the call, so that its progress can be found after a
//! crash.

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

use super::background::BackgroundAgents;
use super::child_start::{ChildStart, failure_report};
use super::hub::Company;
use super::parent::ParentSession;
use super::{hub, listing};
use crate::prompt::prompt_copy::PromptCopy;
use crate::session::config::KnowledgeSettings;
use crate::turn::event_log;

/// The agents that are about to start, and the session that starts them.
type PreparedAgents = (Arc<ParentSession>, Vec<ChildStart>);

/// The agents a session can start.
pub(crate) struct SubagentRoster {
    paths: KnowledgePaths,
    /// Agents given by the configuration instead of by files.
    configured: Vec<AgentDefinition>,
    masker: Masker,
    found: NamedItems<AgentDefinition>,
    parent: OnceLock<Arc<ParentSession>>,
    progress: Mutex<ParentProgress>,
    pub(crate) background: tokio::sync::Mutex<BackgroundAgents>,
}

/// The state of a session at the time when it starts agents.
#[derive(Clone, Default)]
pub(crate) struct ParentProgress {
    /// The reply that contains the call that starts the agents.
    pub(crate) reply: Option<MessageId>,
    /// The session's model.
    pub(crate) model: String,
    /// The session's prompt, for forks; `None` unless a call may start agents.
    pub(crate) prompt: Option<Arc<PromptCopy>>,
    /// The number of replies that the session's limits still allow; `None` if there is no limit.
    pub(crate) turns: Option<u32>,
    /// The time that the session's limits still allow; `None` if there is no limit.
    pub(crate) time: Option<Duration>,
}

impl SubagentRoster {
    /// Loads the agents. Returns `None` if no agents exist.
    pub(crate) fn load(knowledge: &KnowledgeSettings, masker: &Masker) -> Option<Arc<Self>> {
        let KnowledgeSettings {
            paths,
            agents: given,
            ..
        } = knowledge;
        // The problems are only logged here; `haft agents list` prints them.
        let mut problems = Vec::new();
        let found = agents::load_agents_after(given, paths, &mut problems);
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
            configured: given,
            masker,
            found,
            parent: OnceLock::new(),
            progress: Mutex::default(),
            background: tokio::sync::Mutex::default(),
        }))
    }

    /// Describes the agents for the system message.
    pub(crate) fn describe_agents(&self) -> CaseDocument {
        listing::describe_agents(&self.found.items, &self.masker)
    }

    /// Sets the values that sub-agents inherit. Before this call, no agent can be started.
    pub(crate) fn set_parent(&self, parent: ParentSession) {
        // Called once, when the session is opened.
        drop(self.parent.set(Arc::new(parent)));
    }

    /// Records the session's state before its calls run.
    pub(crate) fn set_progress(&self, now: ParentProgress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Reads an agent's definition from its file again, to pick up changes.
    fn reload_definition(&self, name: &str) -> Option<AgentDefinition> {
        agents::load_agents_after(&self.configured, &self.paths, &mut Vec::new())
            .get(name)
            .cloned()
    }

    /// Prepares the agents that a call starts. Returns `None` if no turn is running. Agents that
    /// run in parallel are all registered before the first one starts, so that each can send
    /// messages to the others.
    fn prepare_starts(
        &self,
        context: &ToolContext,
        order: WorkOrder,
        work: &[Assignment],
    ) -> Result<Option<PreparedAgents>, UnknownAgent> {
        let mut found = Vec::with_capacity(work.len());
        for one in work {
            let unknown = || UnknownAgent {
                name: one.name.clone(),
                names: self.agent_names(),
            };
            found.push(self.reload_definition(&one.name).ok_or_else(unknown)?);
        }
        let now = self
            .progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some((parent, reply)) = self.parent.get().zip(now.reply) else {
            return Ok(None);
        };
        let longest = Duration::from_secs(parent.running.limits().agent_seconds);
        let names = unique_names(work, &parent.shared.hub.agent_names());
        let company = if order != WorkOrder::Serial && work.len() > 1 {
            Company::Others
        } else {
            Company::Alone
        };
        let starts = work.iter().zip(found).zip(names).enumerate().map(
            |(index, ((assignment, agent), running_as))| {
                let mailbox = (order != WorkOrder::Serial)
                    .then(|| parent.shared.hub.register(&running_as, &agent.role));
                let waiting = (order != WorkOrder::Background).then(|| parent.config.agent.clone());
                let is_fork = agent.fork;
                ChildStart {
                    agent,
                    assignment: assignment.clone(),
                    running_as,
                    mailbox,
                    conversation: child_conversation_id(
                        &parent.conversation,
                        reply,
                        &context.call_id,
                        index,
                    ),
                    call_id: context.call_id.clone(),
                    waiting,
                    company,
                    prompt: now.prompt.clone().filter(|_| is_fork),
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

/// Returns the id of the conversation of sub-agent number `index` of a call.
pub(crate) fn child_conversation_id(
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
    ConversationId::new(MessageId::from_hash(hasher.finish()).to_string())
}

/// Returns the names under which the agents run. A number is appended to a name that is taken.
pub(crate) fn unique_names(work: &[Assignment], taken: &[String]) -> Vec<String> {
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
    fn agent_names(&self) -> Vec<String> {
        self.found
            .items
            .iter()
            .map(|agent| agent.name.clone())
            .collect()
    }

    async fn run_assignments(
        &self,
        context: &ToolContext,
        order: WorkOrder,
        work: Vec<Assignment>,
    ) -> Result<Vec<AgentReport>, UnknownAgent> {
        let Some((parent, starts)) = self.prepare_starts(context, order, &work)? else {
            let why = "sub-agents can only be started by a running turn";
            return Ok(work
                .iter()
                .map(|one| failure_report(&one.name, "not_running", why))
                .collect());
        };
        let at_once = if order == WorkOrder::Serial {
            1
        } else {
            hub::max_concurrency()
        };
        let children = starts
            .into_iter()
            .map(|start| (parent.run_child)(Arc::clone(&parent), start));
        Ok(futures::stream::iter(children)
            .buffered(at_once)
            .collect()
            .await)
    }

    async fn start_assignments(
        &self,
        context: &ToolContext,
        work: Vec<Assignment>,
    ) -> Result<Vec<StartedAgent>, UnknownAgent> {
        let Some((parent, starts)) = self.prepare_starts(context, WorkOrder::Background, &work)?
        else {
            return Ok(Vec::new());
        };
        let mut background = self.background.lock().await;
        Ok(starts
            .into_iter()
            .map(|start| background.start(&parent, start))
            .collect())
    }
}
