//! Agents that run in the background of the session that started them.
//!
//! Invariant: a background agent ends before the turn that started it.

use std::sync::Arc;

use haft_tool::{AgentReport, StartedAgent};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::child_start::ChildStart;
use super::parent::ParentSession;

/// An agent that has ended, and its report.
pub(crate) type EndedAgent = (StartedAgent, AgentReport);

/// The agents a session has started in the background.
#[derive(Default)]
pub(crate) struct BackgroundAgents {
    running: JoinSet<EndedAgent>,
    stops: Vec<CancellationToken>,
    /// Agents that have ended, but whose end has not been announced to the model.
    ended: Vec<EndedAgent>,
}

impl BackgroundAgents {
    pub(super) fn start(&mut self, parent: &Arc<ParentSession>, start: ChildStart) -> StartedAgent {
        let earlier = start
            .assignment
            .conversation
            .as_deref()
            .and_then(|id| parent.children.find(id));
        let conversation =
            earlier.map_or_else(|| start.conversation.clone(), |child| child.conversation);
        let started = StartedAgent {
            name: start.running_as.clone(),
            conversation: conversation.to_string(),
        };
        self.stops.push(start.cancel.clone());
        let named = started.clone();
        let running = (parent.run_child)(Arc::clone(parent), start);
        self.running.spawn(async move { (named, running.await) });
        started
    }

    /// Waits until the next running agent ends. Returns `false` if no agent is running and no end
    /// is left to announce.
    pub(crate) async fn wait_for_ended(&mut self) -> bool {
        let next = self.running.join_next().await;
        // A crashed agent yields a report as well.
        self.ended.extend(next.into_iter().flatten());
        !self.ended.is_empty()
    }

    /// Returns the agents that have ended since the last call of this method.
    pub(crate) fn take_ended(&mut self) -> Vec<EndedAgent> {
        while let Some(next) = self.running.try_join_next() {
            self.ended.extend(next);
        }
        std::mem::take(&mut self.ended)
    }

    /// Stops all agents and returns those whose end has not been announced.
    pub(crate) async fn stop_all(&mut self) -> Vec<StartedAgent> {
        self.stops.drain(..).for_each(|stop| stop.cancel());
        while let Some(next) = self.running.join_next().await {
            self.ended.extend(next);
        }
        self.ended.drain(..).map(|(started, _)| started).collect()
    }
}
