//! Continues a reply that was cut off by the output limit. The replies to all these requests are
//! merged into one message.
//!
//! The partial reply is sent back as a prefill if the model supports it, else with an instruction
//! to continue. These requests are not part of the conversation and are not logged: the next logged
//! request contains the merged reply. A reply that was cut off inside a tool call is not continued;
//! the call check rejects that call.

use std::sync::Arc;

use haft_context::add_reminder_tag;
use haft_model::{ModelError, Reply};
use haft_types::{
    Entry, Layer, LlmMetadata, Message, Origin, Part, Request, Role, Segment, StopReason,
};

use crate::budget::spending::PaidRequest;
use crate::session::Session;
use crate::turn::Nudge;
use crate::turn::reply::StreamedReply;
use crate::turn::turn_io::TurnIo;

impl Session {
    /// Continues the reply until it is complete or cannot be continued. On an error, returns the
    /// partial reply and the error.
    pub(crate) async fn continue_reply(
        &mut self,
        request: &Request,
        mut reply: Reply,
        io: &mut TurnIo<'_>,
    ) -> (Reply, Option<ModelError>) {
        // A recorded reply is already the whole of its parts.
        if self.config.tools.replayed.is_some() {
            return (reply, None);
        }
        for _ in 0..self.services.running.limits().continuations {
            if !can_continue(&reply) {
                break;
            }
            let more = self.continuation_request(request, &reply);
            let cancel = io.cancel;
            let mut shown = StreamedReply::new(self.config.policy.message_ids, io);
            let client = &mut self.services.models.client;
            let meter = &mut self.meter;
            let arrived = match PaidRequest::reserve(Arc::new(more), client, meter, cancel).await {
                Ok(paid) => {
                    paid.send(client, meter, cancel, &mut |delta| shown.push_delta(delta))
                        .await
                }
                Err(error) => Err(error),
            };
            shown.finish();
            match arrived {
                Ok(next) => append_rest(&mut reply, next),
                Err(error) => return (reply, Some(error)),
            }
        }
        (reply, None)
    }

    /// Returns the request for the rest of a reply.
    fn continuation_request(&self, request: &Request, partial: &Reply) -> Request {
        let prefill = self.config.model.capabilities.prefill;
        let mut parts = partial.parts.clone();
        if prefill && let Some(Part::Text { text, .. }) = parts.last_mut() {
            // APIs reject a prefill that ends in whitespace.
            text.truncate(text.trim_end().len());
        }
        let mut begun = Message::new(
            self.transcript.fresh_id(),
            Role::Assistant,
            parts,
            self.services.shared.clock.now(),
        );
        // Thinking is sent back only to the model that produced it.
        let model = self.config.model.full_name();
        begun.llm_metadata = Some(Box::new(LlmMetadata {
            model_name: model,
            ..LlmMetadata::default()
        }));
        let mut added = vec![begun];
        if !prefill {
            let now = self.services.shared.clock.now();
            added.push(
                Message::from_text(
                    self.transcript.fresh_id(),
                    Role::User,
                    add_reminder_tag(Nudge::Cut.text(self.config.policy.prompt_language)),
                    now,
                )
                .with_origin(Origin::Engine),
            );
        }
        let segment = |message| Segment {
            layer: Layer::History,
            owner: "continuation",
            entry: Entry::new(message, self.services.shared.counter.as_ref()),
            boundary: false,
        };
        let mut more = request.clone();
        more.segments.extend(added.into_iter().map(segment));
        more
    }
}

/// Returns true if the reply was cut off in its text, where it can be continued, and not in a tool
/// call.
fn can_continue(reply: &Reply) -> bool {
    let ends_in_words =
        matches!(reply.parts.last(), Some(Part::Text { text, .. }) if !text.trim().is_empty());
    reply.stop == StopReason::Length && ends_in_words
}

/// Appends the continuation `next` to a partial reply.
fn append_rest(reply: &mut Reply, next: Reply) {
    let mut parts = next.parts.into_iter().peekable();
    // Thinking about the continuation is not part of the reply, and its signature would not fit.
    while parts
        .next_if(|part| matches!(part, Part::Thinking(_)))
        .is_some()
    {}
    if let (Some(Part::Text { text, .. }), Some(Part::Text { .. })) =
        (reply.parts.last_mut(), parts.peek())
        && let Some(Part::Text { text: rest, .. }) = parts.next()
    {
        text.push_str(&rest);
    }
    reply.parts.extend(parts);
    reply.usage += next.usage;
    reply.stop = next.stop;
    reply.duration += next.duration;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haft_types::{Thinking, ToolCall, Usage};

    use super::*;

    fn reply(parts: Vec<Part>, stop: StopReason) -> Reply {
        Reply {
            parts,
            stop,
            usage: Usage {
                output: 10,
                ..Usage::default()
            },
            time_to_first_token: Duration::ZERO,
            duration: Duration::from_secs(1),
        }
    }

    #[test]
    fn join_merges_pieces_into_one_text() {
        let mut whole = reply(vec![Part::from_text("half a sen")], StopReason::Length);
        assert!(can_continue(&whole));
        let thought = Part::Thinking(Thinking {
            text: "go on".into(),
            ..Thinking::default()
        });
        append_rest(
            &mut whole,
            reply(
                vec![thought, Part::from_text("tence.")],
                StopReason::EndTurn,
            ),
        );
        assert_eq!(whole.parts, [Part::from_text("half a sentence.")]);
        assert_eq!(
            (whole.stop.clone(), whole.usage.output, whole.duration),
            (StopReason::EndTurn, 20, Duration::from_secs(2))
        );
        assert!(!can_continue(&whole));
    }

    #[test]
    fn can_go_on_is_false_for_a_reply_cut_inside_a_call() {
        let call = ToolCall {
            id: "1".into(),
            name: "t".into(),
            arguments: "{".into(),
            signature: None,
        };
        assert!(!can_continue(&reply(
            vec![Part::from_text("I will"), Part::ToolCall(call)],
            StopReason::Length
        )));
        assert!(!can_continue(&reply(vec![], StopReason::Length)));
    }
}
