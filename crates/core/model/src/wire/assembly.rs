//! Assembles the parts of a reply while they arrive, and passes deltas to the sink.

use haft_types::{ContentHash, Hasher, Part, Request, StopReason, Thinking, ToolCall, Usage};

use super::Sink;
use crate::reply::Delta;

/// The decoded content of a reply.
#[derive(Debug, PartialEq)]
pub(crate) struct DecodedReply {
    pub parts: Vec<Part>,
    pub stop: StopReason,
    pub usage: Usage,
}

/// The prefix in the ids of calls that were parsed from text although the API has native tool
/// calls.
const FROM_TEXT_PREFIX: &str = "text_";
/// Follows [`FROM_TEXT_PREFIX`] in the ids of calls whose text was not JSON and was converted.
const CONVERTED_PREFIX: &str = "converted_";

/// The notation of a call that was parsed from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Json,
    /// Braces were doubled, or a text was in triple quotes.
    Converted,
}

/// Generates ids for calls that arrive without an id. An id is computed from the number of the call
/// in the conversation and a hash of its position.
#[derive(Clone, Debug)]
pub(crate) struct CallIds {
    calls: usize,
    seed: ContentHash,
}

impl CallIds {
    /// Creates the id generator for the reply to `request`.
    pub(crate) fn for_reply_to(request: &Request) -> Self {
        let calls = request
            .segments
            .iter()
            .map(|segment| segment.entry.message.tool_calls().count())
            .sum();
        // Pruning may lower the count; the end of the request then keeps the ids distinct.
        let mut hasher = Hasher::default();
        hasher.update(&request.segments.len().to_le_bytes());
        if let Some(last) = request.segments.last() {
            hasher.update(&last.entry.hash.0);
        }
        Self {
            calls,
            seed: hasher.finish(),
        }
    }

    /// Returns the next id, to be used for a call of the tool `name`.
    pub(crate) fn next_id(&mut self, name: &str) -> String {
        self.calls += 1;
        let hash = Hasher::default()
            .update(&self.seed.0)
            .update(&self.calls.to_le_bytes())
            .update(name.as_bytes())
            .finish();
        let hex = hash.to_string();
        format!("call_{}_{}", self.calls, hex.get(..8).unwrap_or(&hex))
    }

    /// Like [`Self::next_id`], but for a call that was parsed from text.
    pub(crate) fn next_id_from_text(&mut self, name: &str, notation: Notation) -> String {
        let converted = match notation {
            Notation::Json => "",
            Notation::Converted => CONVERTED_PREFIX,
        };
        format!("{FROM_TEXT_PREFIX}{converted}{}", self.next_id(name))
    }

    /// True if haft generated this id for a call whose text was converted to JSON.
    pub(crate) fn is_converted(id: &str) -> bool {
        Self::is_from_text(id)
            && id
                .strip_prefix(FROM_TEXT_PREFIX)
                .is_some_and(|rest| rest.starts_with(CONVERTED_PREFIX))
    }

    /// True if haft generated this id for a call that was parsed from text.
    pub(crate) fn is_from_text(id: &str) -> bool {
        id.starts_with(FROM_TEXT_PREFIX) && Self::is_generated(id)
    }

    /// True if haft generated this id, so that the provider has never seen it.
    pub(crate) fn is_generated(id: &str) -> bool {
        let id = id.strip_prefix(FROM_TEXT_PREFIX).unwrap_or(id);
        let mut pieces = id.strip_prefix(CONVERTED_PREFIX).unwrap_or(id).split('_');
        pieces.next() == Some("call")
            && pieces
                .next()
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
            && pieces
                .next()
                .is_some_and(|hex| hex.len() == 8 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
            && pieces.next().is_none()
    }
}

/// The parts of a reply that have been received so far. Consecutive pieces of one kind form one
/// part.
#[derive(Debug, Default)]
pub(crate) struct ReplyParts {
    parts: Vec<Part>,
}

impl ReplyParts {
    /// Appends a piece of the answer.
    pub(crate) fn push_text(&mut self, piece: &str, sink: Sink<'_>) {
        if piece.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Text {
                text,
                signature: None,
            }) => text.push_str(piece),
            _ => self.parts.push(Part::from_text(piece)),
        }
        sink(Delta::Text(piece.to_owned()));
    }

    /// Appends a piece of the reasoning.
    pub(crate) fn push_thinking(&mut self, piece: &str, sink: Sink<'_>) {
        if piece.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Thinking(Thinking {
                text,
                signature: None,
                raw: None,
            })) => text.push_str(piece),
            _ => self.parts.push(Part::Thinking(Thinking {
                text: piece.to_owned(),
                ..Thinking::default()
            })),
        }
        sink(Delta::Thinking(piece.to_owned()));
    }

    /// Appends a complete part without reporting it to the sink, and returns its index.
    pub(crate) fn push_part(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// Adds a part for a new call, reports the start of the call to the sink, and returns the index
    /// of the part.
    pub(crate) fn open_call(&mut self, id: String, name: String, sink: Sink<'_>) -> usize {
        sink(Delta::CallStarted {
            id: id.clone(),
            name: name.clone(),
        });
        self.push_part(Part::ToolCall(ToolCall {
            id,
            name,
            arguments: String::new(),
            signature: None,
        }))
    }

    /// Appends a piece to the arguments of the call at index `at`.
    pub(crate) fn push_arguments(&mut self, at: usize, piece: &str, sink: Sink<'_>) {
        if piece.is_empty() {
            return;
        }
        if let Some(Part::ToolCall(call)) = self.parts.get_mut(at) {
            call.arguments.push_str(piece);
            sink(Delta::CallArguments {
                id: call.id.clone(),
                piece: piece.to_owned(),
            });
        }
    }

    /// Reports the end of the call at index `at` to the sink.
    pub(crate) fn close_call(&self, at: usize, sink: Sink<'_>) {
        if let Some(Part::ToolCall(call)) = self.parts.get(at) {
            sink(Delta::CallFinished {
                id: call.id.clone(),
            });
        }
    }

    pub(crate) fn part_mut(&mut self, at: usize) -> Option<&mut Part> {
        self.parts.get_mut(at)
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut Part> {
        self.parts.last_mut()
    }

    /// Returns the finished reply. Some servers report `stop` although the model called a tool; the
    /// stop reason is then corrected.
    pub(crate) fn finish(self, stop: Option<StopReason>, usage: Usage) -> DecodedReply {
        let has_calls = self
            .parts
            .iter()
            .any(|part| matches!(part, Part::ToolCall(_)));
        let stop = match stop {
            None | Some(StopReason::EndTurn) if has_calls => StopReason::ToolUse,
            None => StopReason::EndTurn,
            Some(stop) => stop,
        };
        // Blocks that were opened and never filled are dropped.
        let has_content = |part: &Part| match part {
            Part::Text { text, signature } => !text.is_empty() || signature.is_some(),
            Part::Thinking(thinking) => *thinking != Thinking::default(),
            Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => true,
        };
        DecodedReply {
            parts: self.parts.into_iter().filter(has_content).collect(),
            stop,
            usage,
        }
    }
}
