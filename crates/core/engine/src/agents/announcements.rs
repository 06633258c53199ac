//! Announces ended background agents to the model, once each. A turn waits for its background
//! agents, and stops them if it has to end before they do.
//!
//! Invariant: an announcement is a message of the stored history, and its metadata names its
//! agents. A resumed conversation finds the unannounced agents by comparing the two.

use std::sync::Arc;

use haft_context::add_reminder_tag;
use haft_tool::StartedAgent;
use haft_tools::{RUN_SUBAGENTS, format_ended_agents, parse_background_agents};
use haft_types::{ConversationId, Entry, EventBody, Message, Metadata, Origin, Role};
use serde_json::Value;

use crate::calls::progress::ProgressRelay;
use crate::error::EngineError;
use crate::names::ENDED_AGENTS_KEY;
use crate::session::Session;
use crate::turn::turn_io::TurnIo;

impl Session {
    /// Appends one message that informs the model about all agents that have ended.
    pub(crate) async fn announce_ended_agents(
        &mut self,
        io: &mut TurnIo<'_>,
    ) -> Result<(), EngineError> {
        for event in self.agents.relayed.take_arrived_events() {
            io.relay_event(event);
        }
        self.add_relayed_usage();
        let mut ended = Vec::new();
        if let Some(roster) = &self.agents.roster {
            ended = roster.background.lock().await.take_ended();
        }
        let left = std::mem::take(&mut self.agents.unannounced);
        if ended.is_empty() && left.is_empty() {
            return Ok(());
        }
        let (started, reports): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
        let mut texts = Vec::new();
        if !reports.is_empty() {
            let text = format_ended_agents(
                &reports,
                self.services.running.limits().output_limits(),
                &self.prompt.registry().known_names(),
            );
            texts.push(format!(
                "Agents that you started in the background have ended.\n\n{text}"
            ));
        }
        if !left.is_empty() {
            texts.push(
                "The turn ended before these agents that you started in the background; they run no more.".into(),
            );
        }
        for one in &left {
            texts.push(
                self.describe_progress(&one.name, &ConversationId::new(&one.conversation))
                    .await?
                    .0,
            );
        }
        let ids = started
            .iter()
            .chain(&left)
            .map(|one| Value::from(one.conversation.as_str()))
            .collect();
        let now = self.services.shared.clock.now();
        let message = Message::from_text(
            self.transcript.fresh_id(),
            Role::User,
            add_reminder_tag(&texts.join("\n\n")),
            now,
        );
        let metadata = Metadata::from_iter([(ENDED_AGENTS_KEY.to_owned(), Value::Array(ids))]);
        self.transcript
            .append(
                Message {
                    metadata,
                    ..message
                }
                .with_origin(Origin::Engine),
            )
            .await?;
        for change in reports.into_iter().flat_map(|report| report.changes) {
            self.prompt
                .record_change(&self.config.folders.workspace, &change);
            let path = self.config.folders.workspace.display_path(&change.path);
            io.emit(EventBody::FileChanged {
                path,
                change: change.kind,
            });
        }
        Ok(())
    }

    /// Waits until the next background agent ends. Returns `false` if the turn was canceled, or if
    /// no agent is running and no end is left to announce.
    pub(crate) async fn wait_for_agent(&mut self, io: &mut TurnIo<'_>) -> bool {
        let Some(roster) = self.agents.roster.clone() else {
            return false;
        };
        let mut background = roster.background.lock().await;
        let cancel = io.cancel;
        let waited = async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => false,
                ended = background.wait_for_ended() => ended,
            }
        };
        let ended = ProgressRelay::new()
            .relay_until(waited, &mut self.agents.relayed, io)
            .await;
        self.add_relayed_usage();
        ended
    }

    /// Stops the background agents that are still running at the end of a turn.
    pub(crate) async fn stop_background_agents(&mut self, io: &mut TurnIo<'_>) {
        let Some(roster) = self.agents.roster.clone() else {
            return;
        };
        let mut background = roster.background.lock().await;
        let left = ProgressRelay::new()
            .relay_until(background.stop_all(), &mut self.agents.relayed, io)
            .await;
        self.add_relayed_usage();
        self.agents.unannounced.extend(left);
    }
}

/// Returns the background agents in a stored conversation whose end was never announced.
pub(crate) fn unannounced_agents(history: &[Arc<Entry>]) -> Vec<StartedAgent> {
    let mut left: Vec<StartedAgent> = Vec::new();
    for entry in history {
        let results = entry
            .message
            .tool_results()
            .filter(|result| result.name == RUN_SUBAGENTS);
        left.extend(results.flat_map(|result| parse_background_agents(&result.envelope)));
        let ended = entry
            .message
            .metadata
            .get(ENDED_AGENTS_KEY)
            .and_then(Value::as_array);
        if let Some(ended) = ended {
            left.retain(|one| !ended.contains(&Value::from(one.conversation.as_str())));
        }
    }
    left
}
