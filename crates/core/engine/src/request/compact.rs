//! Compacts the conversation: when compaction is due or requested, a model summarizes older rounds,
//! the summary is checked, and an accepted summary is appended.
//!
//! Nothing is ever deleted. If no acceptable summary can be created, a stand-in built without a
//! model is sent in its place. The stand-in is stored separately from the messages, so that a later
//! summary can replace it, and the user gets a notice. Invariant: regardless of the summarizing
//! model, the next request contains everything that the ledger of the archived rounds lists.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haft_context::{
    ArchiveWish, Assembly, CompactionPlan, ContextError, Due, LedgerItem, OpenWork, SummaryRefusal,
    SummaryWish, accept_summary, build_fallback_summary, build_summary_request, collect_ledger,
    compaction_due, has_round_grown, is_too_early, new_summary_message, plan_compaction,
};
use haft_model::{Client, Delta, ModelError, Reply};
use haft_tools::TodoState;
use haft_types::{
    CompactionPhase, ContentHash, Cost, EventBody, LlmMetadata, Message, MessageId, ModelSpec,
    Part, Request, Role, StopReason, TokenCounter, Usage,
};
use tokio_util::sync::CancellationToken;

use crate::agents::parent::Rank;
use crate::budget::meter::Meter;
use crate::budget::spending::PaidRequest;
use crate::error::EngineError;
use crate::hooks::HookEvent;
use crate::session::Session;
use crate::turn::turn_io::{EventSink, TurnIo};

/// The outcome of a compaction that the user requested. Its `Display` output is a sentence for the
/// user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionOutcome {
    /// Older rounds or steps were archived.
    Archived {
        /// A description of the archived content, such as `3 older rounds`.
        what: String,
        /// The number of whole rounds.
        rounds: u32,
    },
    /// Nothing can be archived: only messages that are always kept are left.
    NothingToArchive,
    /// Archiving would save nothing: the content of the older rounds that must be kept takes as
    /// much room as the rounds.
    NotWorthIt,
    /// No acceptable summary was created. An event has reported the reason.
    Failed,
}

impl fmt::Display for CompactionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archived { what, .. } => write!(f, "{what} are archived."),
            Self::NothingToArchive => f.write_str("There is nothing to archive besides the newest step."),
            Self::NotWorthIt => {
                f.write_str("Nothing was archived: what must be kept of the older steps takes as much room as they do.")
            }
            Self::Failed => f.write_str("No summary could be had. Nothing is lost; try again later."),
        }
    }
}

/// The share of the safe zone up to which a request certainly fits without omissions. Less than 1,
/// because token counts are estimates.
const NEAR_SAFE_ZONE_SHARE: f64 = 0.9;

/// The reason why a compaction starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompactionTrigger<'a> {
    /// The context window is nearly full.
    Automatic,
    /// A request of the user, optionally with a text that describes which content to keep.
    ByUser(Option<&'a str>),
}

impl Session {
    /// Archives older rounds if the next request would come too close to the size of the context
    /// window. `input` is the user's input that is not answered yet.
    pub(crate) async fn compact_if_due(
        &mut self,
        input: &str,
        io: &mut TurnIo<'_>,
    ) -> Result<(), EngineError> {
        let Some(usage) = self.transcript.usage_since_last_summary() else {
            return Ok(());
        };
        let policy = &self.config.policy;
        let since = self
            .transcript
            .entries_since_archive(self.sent.stand_in_message());
        // Without a reply since the last archive, the last usage does not apply to the next
        // request.
        if !since
            .iter()
            .any(|entry| entry.message.role == Role::Assistant)
        {
            return Ok(());
        }
        let archived_before = since.len() < self.transcript.history().len();
        let early = archived_before && is_too_early(since, policy);
        let wanted = match compaction_due(
            policy,
            &self.config.model,
            usage,
            input,
            self.transcript.history().len(),
        ) {
            Due::No => false,
            Due::WhenFree => !early && self.will_rewrite_history(),
            Due::Now => !early,
            Due::Overflow => true,
        };
        let wanted = wanted
            || (input.is_empty() && has_round_grown(since, policy) && self.is_short_of_room(usage));
        if !wanted {
            return Ok(());
        }
        self.compact_history(CompactionTrigger::Automatic, io)
            .await
            .map(drop)
    }

    /// Archives older rounds at the user's request. `focus` describes the content that the summary
    /// should emphasize. Automatic compactions that have stopped after too many failures are tried
    /// again after this call.
    pub async fn compact_now(
        &mut self,
        focus: Option<&str>,
        sink: &mut dyn EventSink,
        cancel: &CancellationToken,
    ) -> Result<CompactionOutcome, EngineError> {
        let mut io = self.turn_io(sink, cancel);
        self.sent.reset_failures(&self.transcript).await?;
        let compacted = self
            .compact_history(CompactionTrigger::ByUser(focus), &mut io)
            .await;
        self.seq = io.seq();
        compacted
    }

    /// Returns the next request, with a placeholder if the user's input is still missing. Returns
    /// `None` if no request can be built.
    pub fn preview_next_request(&self) -> Option<Assembly> {
        self.assemble_request(&self.history_with_input(), self.sent.edit_state())
            .ok()
    }

    async fn compact_history(
        &mut self,
        wanted: CompactionTrigger<'_>,
        io: &mut TurnIo<'_>,
    ) -> Result<CompactionOutcome, EngineError> {
        let policy = &self.config.policy;
        let counter = Arc::clone(&self.services.shared.counter);
        let automatic = self
            .sent
            .cleared()
            .map_or(ArchiveWish::Automatic, ArchiveWish::AfterClearing);
        let (trigger, focus, wish) = match wanted {
            CompactionTrigger::Automatic => ("auto", None, automatic),
            CompactionTrigger::ByUser(focus) => ("manual", focus, ArchiveWish::ByHand),
        };
        let history = self.transcript.history();
        let Some(mut plan) =
            plan_compaction(history, wish, policy, &self.config.model, counter.as_ref())
        else {
            return Ok(CompactionOutcome::NothingToArchive);
        };
        let quoted = self
            .quote_archive(&plan)
            .map_or_else(String::new, |quote| format!("; {quote} to write again"));
        // Messages that the user removed are hidden from the summarizing model as well.
        plan.messages = self
            .sent
            .edit_state()
            .visible_entries(&plan.messages, counter.as_ref());
        let ledger = self.build_ledger(&plan);
        let Some(kept) = build_fallback_summary(&plan, &ledger, counter.as_ref()) else {
            return Ok(CompactionOutcome::NotWorthIt);
        };
        if wanted == CompactionTrigger::Automatic && self.sent.has_stopped_compacting() {
            self.set_stand_in(&plan, kept).await?;
            io.emit(compaction_event(
                CompactionPhase::Failed,
                &plan,
                compaction_stopped_message(&plan),
            ));
            return Ok(CompactionOutcome::Failed);
        }
        self.call_hooks(
            HookEvent::PreCompact {
                trigger,
                rounds: plan.rounds,
            },
            io,
        )
        .await;
        let message = format!(
            "Archiving {} ({} tokens{quoted})…",
            plan.format_subject(),
            plan.tokens()
        );
        io.emit(compaction_event(CompactionPhase::Started, &plan, message));
        if let Some(recorded) = self.config.tools.replayed.clone() {
            let Some(summary) = recorded.next_summary() else {
                let why = "the recorded run has no summary here";
                return self.record_failed_archive(&plan, kept, why, io).await;
            };
            let made = Summary::from_record(summary, self.config.model.clone());
            return self.archive(&plan, made.text(), &made, io).await;
        }
        let session = self.transcript.history().to_vec();
        let mut refused = None;
        // A rejected summary is requested once more, with the reason.
        for _ in 0..2 {
            let wish = SummaryWish {
                focus,
                refused: refused.as_ref(),
                session: &session,
            };
            let made = match self.request_summary(&plan, wish, io).await {
                Ok(made) => made,
                // A cancellation is not counted as a failure. The next request is unchanged.
                Err(_) if io.cancel.is_cancelled() => {
                    let message =
                        "Nothing was archived (interrupted). The conversation is as it was."
                            .to_owned();
                    io.emit(compaction_event(CompactionPhase::Failed, &plan, message));
                    return Ok(CompactionOutcome::Failed);
                }
                Err(why) => return self.record_failed_archive(&plan, kept, &why, io).await,
            };
            match made
                .complete_text()
                .and_then(|text| accept_summary(&text, &plan, &session, &ledger, counter.as_ref()))
            {
                Ok(text) => return self.archive(&plan, text, &made, io).await,
                Err(why) => {
                    io.emit(made.usage_event());
                    refused = Some(why);
                }
            }
        }
        let why = refused.map_or_else(String::new, |why| {
            format!("two summaries were refused: {why}")
        });
        self.record_failed_archive(&plan, kept, &why, io).await
    }

    /// Stores an accepted summary, which replaces the archived messages in later requests.
    async fn archive(
        &mut self,
        plan: &CompactionPlan,
        text: String,
        made: &Summary,
        io: &mut TurnIo<'_>,
    ) -> Result<CompactionOutcome, EngineError> {
        let mut summary = new_summary_message(
            self.transcript.fresh_id(),
            self.services.shared.clock.now(),
            text,
            plan,
        );
        io.emit(made.usage_event());
        let rounds = self.transcript.round_count();
        summary.llm_metadata =
            Some(LlmMetadata::new(made.by.full_name(), rounds, made.reply.usage, made.cost).into());
        self.transcript.append(summary).await?;
        self.sent.clear_stand_in(&self.transcript).await?;
        self.sent.reset_failures(&self.transcript).await?;
        let what = plan.format_subject();
        io.emit(compaction_event(
            CompactionPhase::Finished,
            plan,
            format!("{what} are archived behind a summary."),
        ));
        Ok(CompactionOutcome::Archived {
            what,
            rounds: plan.rounds,
        })
    }

    /// Stores the stand-in for a summary that could not be created, and records the failure.
    async fn record_failed_archive(
        &mut self,
        plan: &CompactionPlan,
        kept: String,
        why: &str,
        io: &mut TurnIo<'_>,
    ) -> Result<CompactionOutcome, EngineError> {
        self.set_stand_in(plan, kept).await?;
        self.sent.record_failure(&self.transcript).await?;
        let message = format!(
            "{} could not be archived ({why}). Only recent history is sent, and what must be kept of the rest, word for word; \
             nothing is lost.{}",
            plan.format_subject(),
            self.compaction_stopped_note()
        );
        io.emit(compaction_event(CompactionPhase::Failed, plan, message));
        Ok(CompactionOutcome::Failed)
    }

    /// Returns true if most of the next request will miss the cache anyway. Archiving then costs
    /// nothing extra, so all pending changes are made in that request.
    fn will_rewrite_history(&self) -> bool {
        self.is_cache_cold()
            || self
                .assemble_next_request()
                .is_ok_and(|next| next.account.rewrites_history())
    }

    /// Returns true if the next request must leave out more content than the previous request and
    /// clearing tool results is not enough. `last` is the usage of the previous request.
    fn is_short_of_room(&self, last: Usage) -> bool {
        let policy = &self.config.policy;
        let model = &self.config.model;
        let new = self.transcript.tokens_since_reply() as f64 * model.tokenizer_factor;
        let zone = policy.safe_zone_tokens(model).unwrap_or(u64::MAX) as f64;
        let share = policy.compact_cold_at * f64::from(policy.usable_window(model));
        // If the request is certainly small enough, it need not be assembled.
        last.total() as f64 + new > share.max(NEAR_SAFE_ZONE_SHARE * zone)
            && self
                .assemble_next_request()
                .is_ok_and(|next| next.account.is_short_of_room(policy))
    }

    /// Returns everything that a summary must preserve, including open TODO items and running
    /// programs.
    pub(crate) fn build_ledger(&self, plan: &CompactionPlan) -> Vec<LedgerItem> {
        let masked = |text: String| self.config.safety.masker.mask(&text).into_owned();
        let items = match self.agents.rank {
            Rank::Main => self.prompt.todo().items(),
            // The list belongs to the main agent.
            Rank::Sub => Vec::new(),
        };
        let open = items
            .into_iter()
            .filter(|item| item.status != TodoState::Completed);
        let todos: Vec<_> = open.map(|item| masked(item.content)).collect();
        let running: Vec<_> = self
            .services
            .running
            .running_names()
            .into_iter()
            .map(masked)
            .collect();
        collect_ledger(
            plan,
            OpenWork {
                todos: &todos,
                running: &running,
            },
        )
    }

    /// Stores `text` as the stand-in for a summary that could not be created.
    async fn set_stand_in(
        &mut self,
        plan: &CompactionPlan,
        text: String,
    ) -> Result<(), EngineError> {
        // A stand-in is no message of the conversation, so a replay takes no recorded id for it.
        let id = match self.config.tools.replayed {
            Some(_) => MessageId::from_hash(ContentHash::from_content(text.as_bytes())),
            None => self.transcript.fresh_id(),
        };
        let message = new_summary_message(id, self.services.shared.clock.now(), text, plan);
        self.sent
            .set_stand_in(
                message,
                self.services.shared.counter.as_ref(),
                &self.transcript,
            )
            .await
    }

    /// Returns the sentence to add to a failure message if automatic compaction has stopped, or an
    /// empty text if it has not.
    fn compaction_stopped_note(&self) -> &'static str {
        if self.sent.has_stopped_compacting() {
            GIVEN_UP_NOTE
        } else {
            ""
        }
    }

    pub(crate) async fn request_summary(
        &mut self,
        plan: &CompactionPlan,
        wish: SummaryWish<'_>,
        io: &mut TurnIo<'_>,
    ) -> Result<Summary, String> {
        let policy = self.config.policy.clone();
        let limit = Duration::from_secs(policy.summary_timeout.into());
        let request = |by: &ModelSpec, counter: &dyn TokenCounter| {
            build_summary_request(plan, wish, by, &policy, counter)
        };
        self.ask_side_model(SideText::Summary, &request, limit, io)
            .await
    }

    /// Requests a text from the models that write texts of this kind, in order, until a model is
    /// not overloaded. The main model comes last.
    pub(crate) async fn ask_side_model(
        &mut self,
        kind: SideText,
        request: &(dyn Fn(&ModelSpec, &dyn TokenCounter) -> Result<Request, ContextError> + Sync),
        limit: Duration,
        io: &mut TurnIo<'_>,
    ) -> Result<Summary, String> {
        let models = &mut self.services.models;
        let side = match kind {
            SideText::FolderDescription if !models.describers.is_unset() => &mut models.describers,
            SideText::FolderDescription | SideText::Summary => &mut models.summarizers,
        };
        loop {
            let opened = side.open(|name, problem| {
                io.emit_error("summary_model", kind.describe_unusable(name, problem));
            });
            let client = opened.unwrap_or(&mut models.client);
            let by = client.spec().clone();
            let request = request(&by, self.services.shared.counter.as_ref())
                .map_err(|error| error.to_string())?;
            let sent = send_side_request(client, &mut self.meter, request, io);
            let answer = tokio::time::timeout(limit, sent).await;
            match answer.map_err(|_| format!("no summary within {} s", limit.as_secs()))? {
                Ok(reply) => {
                    return Ok(Summary {
                        reply,
                        by,
                        cost: self.meter.take_unreported_cost(),
                    });
                }
                Err(error) if error.is_overload() && side.drop_current() => {
                    let main = self.config.model.full_name();
                    let to = side.next_name().unwrap_or(&main);
                    io.notify_model_switch(&by.full_name(), to, &error);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// A kind of text that a model writes beside the conversation.
#[derive(Clone, Copy)]
pub(crate) enum SideText {
    Summary,
    FolderDescription,
}

impl SideText {
    fn describe_unusable(self, name: &str, problem: &str) -> String {
        match self {
            Self::Summary => format!("`{name}` cannot write summaries: {problem}"),
            Self::FolderDescription => format!("`{name}` cannot describe folders: {problem}"),
        }
    }
}

/// Sends a request that is not part of the conversation, within the budget. The user sees only its
/// repetitions.
pub(crate) async fn send_side_request(
    client: &mut Client,
    meter: &mut Meter,
    request: Request,
    io: &mut TurnIo<'_>,
) -> Result<Reply, ModelError> {
    let cancel = io.cancel;
    let mut tell = |delta: Delta| {
        if matches!(delta, Delta::Retry { .. } | Delta::FieldOmitted { .. }) {
            io.emit_delta(delta);
        }
    };
    let paid = PaidRequest::reserve(Arc::new(request), client, meter, cancel).await?;
    paid.send(client, meter, cancel, &mut tell).await
}

/// A model's reply to a request for a summary.
pub(crate) struct Summary {
    pub(crate) reply: Reply,
    /// The model that wrote the summary.
    pub(crate) by: ModelSpec,
    pub(crate) cost: Option<Cost>,
}

impl Summary {
    /// Returns the summary of a recorded run as the reply of `by`.
    fn from_record(summary: &Message, by: ModelSpec) -> Self {
        let made = summary.llm_metadata.as_deref();
        Self {
            reply: Reply {
                parts: vec![Part::from_text(summary.joined_text())],
                stop: StopReason::EndTurn,
                usage: made.map(LlmMetadata::usage).unwrap_or_default(),
                time_to_first_token: Duration::ZERO,
                duration: Duration::ZERO,
            },
            by,
            cost: None,
        }
    }

    pub(crate) fn usage_event(&self) -> EventBody {
        EventBody::Usage {
            model: self.by.full_name(),
            usage: self.reply.usage,
            cost: self.cost,
            saved_tokens: 0,
        }
    }

    pub(crate) fn text(&self) -> String {
        self.reply.parts.iter().filter_map(part_text).collect()
    }

    /// Returns the text if the model finished the text and called no tools.
    pub(crate) fn complete_text(&self) -> Result<String, SummaryRefusal> {
        const CALLS: SummaryRefusal = SummaryRefusal::Hostile("a tool call");
        let calls = self
            .reply
            .parts
            .iter()
            .any(|part| matches!(part, Part::ToolCall(_)));
        match self.reply.stop {
            _ if calls => Err(CALLS),
            StopReason::EndTurn if self.text().trim().is_empty() => Err(SummaryRefusal::Empty),
            StopReason::EndTurn => Ok(self.text()),
            StopReason::Length | StopReason::Other(_) => Err(SummaryRefusal::Cut),
            StopReason::ToolUse => Err(CALLS),
            StopReason::Refusal => Err(SummaryRefusal::Declined),
        }
    }
}

/// The sentence that is shown after automatic compaction has stopped.
const GIVEN_UP_NOTE: &str = " Three summaries in a row have failed: none is asked for any more until you compact the conversation \
                        yourself.";

fn compaction_event(phase: CompactionPhase, plan: &CompactionPlan, message: String) -> EventBody {
    EventBody::Compaction {
        phase,
        rounds: plan.rounds,
        message,
    }
}

fn compaction_stopped_message(plan: &CompactionPlan) -> String {
    format!(
        "{} are left out, and what must be kept of them is sent word for word. No summary was asked for: \
         three in a row had failed. Compact the conversation yourself to try again.",
        plan.format_subject()
    )
}

fn part_text(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text, .. } => Some(text),
        Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => None,
    }
}
