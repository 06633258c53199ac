//! Agents that work while whoever started them goes on.
//!
//! Invariant: none of them outlives the turn it was started in.

use std::sync::Arc;

use haft_tool::{AgentReport, StartedAgent};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::child::{self, ChildStart};
use super::parent::ParentSession;

/// An agent that has ended, and what came of it.
pub(crate) type EndedAgent = (StartedAgent, AgentReport);

/// The agents a session has started in the background.
#[derive(Default)]
pub(crate) struct BackgroundAgents {
    running: JoinSet<EndedAgent>,
    stops: Vec<CancellationToken>,
    /// Of which nobody has read yet.
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
        let parent = Arc::clone(parent);
        self.running
            .spawn(async move { (named, child::run(parent, start).await) });
        started
    }

    /// Waits until one has ended; `false` where none runs.
    pub(crate) async fn wait(&mut self) -> bool {
        let next = self.running.join_next().await;
        // A crash of one is in its report.
        self.ended.extend(next.into_iter().flatten());
        !self.ended.is_empty()
    }

    /// Those that have ended since this was last asked.
    pub(crate) fn take_ended(&mut self) -> Vec<EndedAgent> {
        while let Some(next) = self.running.try_join_next() {
            self.ended.extend(next);
        }
        std::mem::take(&mut self.ended)
    }

    /// Ends all, and gives those of which nobody has read.
    pub(crate) async fn stop(&mut self) -> Vec<StartedAgent> {
        self.stops.drain(..).for_each(|stop| stop.cancel());
        while let Some(next) = self.running.join_next().await {
            self.ended.extend(next);
        }
        self.ended.drain(..).map(|(started, _)| started).collect()
    }
}
