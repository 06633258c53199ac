//! Compaction through the model (SPEC 6.1–6.4): when it is due, older rounds are summarised, and the summary is appended.
//!
//! Nothing is ever deleted. When the summary cannot be made, only recent history is sent, and the user is told.

use std::time::Duration;

use haft_context::{CompactionPlan, ContextError, compaction_due, plan_compaction, summary_message, summary_request};
use haft_model::{Delta, Reply};
use haft_types::{CompactionPhase, EventBody, LlmMetadata, ModelSpec, Part, Request, Role, StopReason, TokenCounter};
use tokio_util::sync::CancellationToken;

use super::{EngineError, Session};
use crate::callbacks::Moment;
use crate::emit::Emitter;

impl Session {
    /// Archives older rounds if the next request would come too close to the window. `input` is what waits to be answered.
    pub(super) async fn compact_if_due(
        &mut self,
        input: &str,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), EngineError> {
        let Some(usage) = self.usage_since_last_summary() else { return Ok(()) };
        let policy = &self.config.policy;
        if !compaction_due(policy, self.config.model.context_window, usage, input, self.history.len()) {
            return Ok(());
        }
        // After a failure it is not tried again until the user speaks.
        if self.recent_from.is_some() && input.is_empty() {
            return Ok(());
        }
        let Some(plan) = plan_compaction(&self.history, policy, self.services.counter.as_ref()) else { return Ok(()) };
        self.compact(plan, emitter, cancel).await
    }

    async fn compact(
        &mut self,
        plan: CompactionPlan,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), EngineError> {
        let rounds = plan.rounds;
        let tell = |phase, message: String| EventBody::Compaction { phase, rounds, message };
        self.call_back(Moment::PreCompact { trigger: "auto", rounds }, emitter, cancel).await;
        emitter.emit(tell(CompactionPhase::Started, format!("Archiving {rounds} older rounds…")));
        match self.summarise(&plan, emitter, cancel).await {
            Ok(made) => {
                let text = made.text();
                let Summary { reply, by } = made;
                let usage = reply.usage;
                let cost = self.spend(by.price, usage);
                let mut summary = summary_message(self.fresh_id(), self.services.clock.now(), text.trim(), &plan);
                let model = by.full_name();
                summary.llm_metadata = Some(LlmMetadata::new(&model, self.round(), usage, cost));
                self.append_message(summary).await?;
                self.recent_from = None;
                emitter.emit(EventBody::Usage { model, usage, cost, saved_tokens: 0 });
                emitter.emit(tell(
                    CompactionPhase::Finished,
                    format!("{rounds} older rounds are archived behind a summary."),
                ));
            }
            Err(why) => {
                self.recent_from = Some(plan.first_kept);
                let message = format!(
                    "Older rounds could not be archived ({why}). Only recent history is sent; nothing is lost."
                );
                emitter.emit(tell(CompactionPhase::Failed, message));
            }
        }
        Ok(())
    }

    async fn summarise(
        &mut self,
        plan: &CompactionPlan,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> Result<Summary, String> {
        let policy = self.config.policy.clone();
        let limit = Duration::from_secs(policy.summary_timeout.into());
        let request = |by: &ModelSpec, counter: &dyn TokenCounter| summary_request(plan, None, by, &policy, counter);
        self.ask_summariser(&request, limit, emitter, cancel).await
    }

    /// Asks the models that write summaries, one after another while they have too much to do, and the main model last.
    pub(super) async fn ask_summariser(
        &mut self,
        request: &(dyn Fn(&ModelSpec, &dyn TokenCounter) -> Result<Request, ContextError> + Sync),
        limit: Duration,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> Result<Summary, String> {
        loop {
            if self.summariser.is_none() {
                self.open_summariser(emitter);
            }
            let client = self.summariser.as_deref_mut().unwrap_or(&mut self.services.client);
            let by = client.spec().clone();
            let request = request(&by, self.services.counter.as_ref()).map_err(|error| error.to_string())?;
            let mut tell = |delta: Delta| {
                if let Delta::Retry { attempt, limit, delay_ms, reason } = delta {
                    emitter.emit(EventBody::Retry { attempt, limit, delay_ms, reason });
                }
            };
            let answer = tokio::time::timeout(limit, client.stream(&request, cancel, &mut tell)).await;
            match answer.map_err(|_| format!("no summary within {} s", limit.as_secs()))? {
                Ok(reply) => return usable(reply).map(|reply| Summary { reply, by }),
                Err(error) if error.is_overload() && self.summariser.take().is_some() => {
                    let to = self
                        .services
                        .summarisers
                        .front()
                        .map_or_else(|| self.config.model.full_name(), |next| next.name().to_owned());
                    emitter.switched(&by.full_name(), &to, &error);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Opens the next model that is to write summaries; one that cannot be opened is told of and left out.
    fn open_summariser(&mut self, emitter: &mut Emitter<'_>) {
        while self.summariser.is_none()
            && let Some(next) = self.services.summarisers.pop_front()
        {
            match next.open() {
                (_, Ok(client)) => self.summariser = Some(Box::new(client)),
                (name, Err(problem)) => {
                    emitter.error("summary_model", format!("`{name}` cannot write summaries: {problem}"));
                }
            }
        }
    }

    /// The usage of the newest request, unless a summary has been made since: then the next request is smaller.
    fn usage_since_last_summary(&self) -> Option<haft_types::Usage> {
        let newest =
            self.history.iter().rev().find(|entry| matches!(entry.message.role, Role::Assistant | Role::Summary))?;
        match newest.message.role {
            Role::Assistant => newest.message.llm_metadata.as_ref().map(LlmMetadata::usage),
            Role::Summary | Role::System | Role::User | Role::Tool => None,
        }
    }
}

/// A summary as a model wrote it.
pub(super) struct Summary {
    pub(super) reply: Reply,
    /// Who wrote it.
    pub(super) by: ModelSpec,
}

impl Summary {
    /// Its words.
    pub(super) fn text(&self) -> String {
        self.reply.parts.iter().filter_map(text_of).collect()
    }
}

/// The reply, if it holds a summary.
fn usable(reply: Reply) -> Result<Reply, String> {
    match reply.stop {
        StopReason::EndTurn if reply.parts.iter().filter_map(text_of).any(|text| !text.trim().is_empty()) => Ok(reply),
        StopReason::EndTurn => Err("the summary is empty".into()),
        StopReason::Length => Err("the summary was cut by the output limit".into()),
        StopReason::ToolUse | StopReason::Refusal | StopReason::Other(_) => Err("the model wrote no summary".into()),
    }
}

fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text, .. } => Some(text),
        Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => None,
    }
}
