//! Emits a reply as it arrives, and stores it.
//!
//! Invariant: a reply is stored before its calls run and before an event shows them.

use std::collections::{BTreeMap, HashMap};

use haft_context::{HintFilter, MessageIds, divide_usage, strip_hints};
use haft_model::{Delta, Reply};
use haft_types::{
    Cost, EventBody, LlmMetadata, Message, Part, Request, Role, ToolProtocol, ToolShare, Usage,
};

use super::turn_io::{TurnIo, call_finished_event};
use super::{ReplySummary, resume};
use crate::budget::meter::to_millis;
use crate::error::EngineError;
use crate::session::Session;

impl Session {
    /// Stores a reply, then emits events for its calls and its cost.
    pub(crate) async fn store_reply(
        &mut self,
        mut reply: Reply,
        io: &mut TurnIo<'_>,
    ) -> Result<ReplySummary, EngineError> {
        let max_calls = self.services.running.limits().calls_per_reply as usize;
        let left_out = drop_excess_calls(&mut reply.parts, max_calls);
        if left_out > 0 {
            let message = format!(
                "the reply had {} calls: the first {max_calls} are run",
                max_calls + left_out
            );
            io.emit_error("too_many_calls", message);
        }
        let model = self.config.model.full_name();
        let usage = reply.usage;
        let stop = reply.stop.clone();
        let cost = self.meter.take_unreported_cost();
        let message = self.message_from_reply(reply, cost);
        let calls = message
            .tool_calls()
            .map(|call| call.resolve_indirect().into_owned())
            .collect();
        let text = reply_text(&message, self.config.model.tool_protocol);
        let replied = ReplySummary {
            calls,
            text,
            stop,
            unfinished: self.unfinished_work().await,
        };
        // Every API rejects an empty message, so it is not stored; the turn nudges the model
        // instead.
        if !message.content.is_empty() {
            self.transcript.append(message).await?;
        }
        for call in &replied.calls {
            io.emit(call_finished_event(call));
        }
        if self.meter.notice_missing_usage(usage) {
            io.emit_notice(
                "usage_missing",
                format!(
                    "`{model}` reports no usage: tokens and cost are unknown, and limits of tokens and cost have no effect"
                ),
            );
        }
        io.emit(EventBody::Usage {
            model,
            usage,
            cost,
            saved_tokens: self.meter.take_saved_tokens(),
            tools: self.divide_usage_by_tool(usage),
        });
        Ok(replied)
    }

    /// Returns the share of each tool's results in the input of the last request, by name.
    fn divide_usage_by_tool(&self, usage: Usage) -> Vec<ToolShare> {
        let Some(sent) = self.sent.last() else {
            return Vec::new();
        };
        let tool_of: HashMap<_, _> = self
            .transcript
            .history()
            .iter()
            .filter_map(|entry| {
                let result = entry.message.tool_results().next()?;
                Some((entry.message.message_id, result.name.as_str()))
            })
            .collect();
        let segments = sent.segments.iter().map(|segment| segment.tokens);
        let tools = u64::from(self.prompt.tool_set().tokens) + Request::FRAME_TOKENS;
        let tokens: Vec<_> = [tools].into_iter().chain(segments.map(u64::from)).collect();
        let parts = divide_usage(&tokens, usage);
        let mut tools: BTreeMap<&str, Usage> = BTreeMap::new();
        for (segment, part) in sent.segments.iter().zip(parts.iter().skip(1)) {
            if let Some(tool) = tool_of.get(&segment.message) {
                *tools.entry(tool).or_default() += *part;
            }
        }
        let share = |(name, usage): (&str, Usage)| ToolShare {
            name: name.to_owned(),
            input: usage.input,
            cached_input: usage.cached_input,
            cache_write: usage.cache_write,
        };
        tools.into_iter().map(share).collect()
    }

    /// Creates the message to store for a reply.
    fn message_from_reply(&self, reply: Reply, cost: Option<Cost>) -> Message {
        let Self {
            config, transcript, ..
        } = self;
        let parts = match config.policy.message_ids {
            MessageIds::Off => reply.parts,
            MessageIds::Results | MessageIds::All => reply
                .parts
                .into_iter()
                .filter_map(strip_hints_from_part)
                .collect(),
        };
        let mut message = transcript.draft_message(Role::Assistant, parts);
        let mut made = LlmMetadata::new(
            config.model.full_name(),
            transcript.round_count(),
            reply.usage,
            cost,
        );
        made.time_to_first_token_ms = Some(to_millis(reply.time_to_first_token));
        made.duration_ms = Some(to_millis(reply.duration));
        message.llm_metadata = Some(made.into());
        message.metadata.insert(
            resume::STOP_REASON_KEY.into(),
            serde_json::to_value(&reply.stop).unwrap_or_default(),
        );
        message
    }
}

/// Removes the calls beyond the first `max_calls` from a reply, as if the model had not written
/// them, because a stored call would need a result. Returns the number of removed calls.
fn drop_excess_calls(parts: &mut Vec<Part>, max_calls: usize) -> usize {
    let mut calls = 0;
    parts.retain(|part| {
        calls += usize::from(matches!(part, Part::ToolCall(_)));
        calls <= max_calls
    });
    calls.saturating_sub(max_calls)
}

/// Removes message ids from the text of a reply, because a model that gets ids sometimes repeats
/// them. Arguments of calls stay unchanged, because a file may contain such a line.
fn strip_hints_from_part(part: Part) -> Option<Part> {
    match part {
        Part::Text { text, signature } => {
            let stripped = strip_hints(&text);
            let only_hints =
                stripped.trim().is_empty() && !text.trim().is_empty() && signature.is_none();
            (!only_hints).then(|| Part::Text {
                text: stripped.into_owned(),
                signature,
            })
        }
        part @ (Part::ToolCall(_) | Part::Thinking(_) | Part::ToolResult(_) | Part::Image(_)) => {
            Some(part)
        }
    }
}

/// Returns the reply's text for the user. With a text protocol, the thinking is returned if the
/// reply consists only of thinking.
fn reply_text(message: &Message, protocol: ToolProtocol) -> String {
    let text = message.joined_text();
    if !protocol.is_text() || !text.trim().is_empty() {
        return text;
    }
    let thoughts = message.content.iter().filter_map(|part| match part {
        Part::Thinking(thinking) => Some(thinking.text.as_str()),
        Part::Text { .. } | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => None,
    });
    thoughts.collect()
}

/// Emits a reply as it arrives, without message ids that the model repeats.
pub(crate) struct StreamedReply<'a, 'io> {
    io: &'a mut TurnIo<'io>,
    /// Removes message ids from the text; `None` if requests contain no message ids.
    hints: Option<HintFilter>,
}

impl<'a, 'io> StreamedReply<'a, 'io> {
    pub(crate) fn new(ids: MessageIds, io: &'a mut TurnIo<'io>) -> Self {
        Self {
            io,
            hints: (ids != MessageIds::Off).then(HintFilter::default),
        }
    }

    pub(crate) fn push_delta(&mut self, delta: Delta) {
        match (delta, &mut self.hints) {
            (Delta::Text(piece), Some(hints)) => {
                let text = hints.feed(&piece);
                self.emit_text(text);
            }
            (delta, _) => {
                self.finish();
                self.io.emit_delta(delta);
            }
        }
    }

    /// Emits the text that was held back because it could be the start of a message id.
    pub(crate) fn finish(&mut self) {
        let rest = self.hints.as_mut().map(HintFilter::take_rest);
        self.emit_text(rest.unwrap_or_default());
    }

    fn emit_text(&mut self, text: String) {
        if !text.is_empty() {
            self.io.emit_delta(Delta::Text(text));
        }
    }
}
