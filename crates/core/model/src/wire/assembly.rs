//! Puts the parts of a reply together while they arrive, and tells the sink.

use haft_types::{ContentHash, Hasher, Part, Request, StopReason, Thinking, ToolCall, Usage};

use super::Sink;
use crate::reply::Delta;

/// What a decoder made of a reply.
#[derive(Debug, PartialEq)]
pub(crate) struct DecodedReply {
    pub parts: Vec<Part>,
    pub stop: StopReason,
    pub usage: Usage,
}

/// Marks the ids of calls that were read out of text, although the API has a way of its own for
/// them.
const READ_FROM_TEXT: &str = "text_";

/// Makes ids for calls that come without: the number of the call in the conversation, and a hash of
/// where it stands.
#[derive(Clone, Debug)]
pub(crate) struct CallIds {
    calls: usize,
    seed: ContentHash,
}

impl CallIds {
    /// Ids for the reply to this request.
    pub(crate) fn after(request: &Request) -> Self {
        let calls = request
            .segments
            .iter()
            .map(|segment| segment.entry.message.tool_calls().count())
            .sum();
        // Pruning may lower the count; where the request ends keeps ids apart then.
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

    /// The next id.
    pub(crate) fn next(&mut self, name: &str) -> String {
        self.calls += 1;
        let hash = Hasher::default()
            .update(&self.seed.0)
            .update(&self.calls.to_le_bytes())
            .update(name.as_bytes())
            .finish();
        let hex = hash.to_string();
        format!("call_{}_{}", self.calls, hex.get(..8).unwrap_or(&hex))
    }

    /// The next id, of a call that was read out of text.
    pub(crate) fn next_from_text(&mut self, name: &str) -> String {
        format!("{READ_FROM_TEXT}{}", self.next(name))
    }

    /// Whether haft made this id for a call that was read out of text.
    pub(crate) fn is_from_text(id: &str) -> bool {
        id.starts_with(READ_FROM_TEXT) && Self::is_own(id)
    }

    /// Whether haft made this id, so that the provider knows nothing of it.
    pub(crate) fn is_own(id: &str) -> bool {
        let mut pieces = id.strip_prefix(READ_FROM_TEXT).unwrap_or(id).split('_');
        let number = |piece: Option<&str>| {
            piece.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        pieces.next() == Some("call")
            && number(pieces.next())
            && pieces
                .next()
                .is_some_and(|hex| hex.len() == 8 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
            && pieces.next().is_none()
    }
}

/// The parts so far. Pieces of one kind that follow each other are one part.
#[derive(Debug, Default)]
pub(crate) struct ReplyParts {
    parts: Vec<Part>,
}

impl ReplyParts {
    /// A piece of the answer.
    pub(crate) fn text(&mut self, piece: &str, sink: Sink<'_>) {
        if piece.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Text {
                text,
                signature: None,
            }) => text.push_str(piece),
            _ => self.parts.push(Part::text(piece)),
        }
        sink(Delta::Text(piece.to_owned()));
    }

    /// A piece of the reasoning.
    pub(crate) fn thinking(&mut self, piece: &str, sink: Sink<'_>) {
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

    /// A whole part that nobody is shown.
    pub(crate) fn push(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// A call begins; the number names it in the calls below.
    pub(crate) fn call(&mut self, id: String, name: String, sink: Sink<'_>) -> usize {
        sink(Delta::CallStarted {
            id: id.clone(),
            name: name.clone(),
        });
        self.push(Part::ToolCall(ToolCall {
            id,
            name,
            arguments: String::new(),
            signature: None,
        }))
    }

    /// A piece of a call's arguments.
    pub(crate) fn arguments(&mut self, at: usize, piece: &str, sink: Sink<'_>) {
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

    /// The call is closed.
    pub(crate) fn close_call(&self, at: usize, sink: Sink<'_>) {
        if let Some(Part::ToolCall(call)) = self.parts.get(at) {
            sink(Delta::CallFinished {
                id: call.id.clone(),
            });
        }
    }

    /// The part with this number.
    pub(crate) fn part_mut(&mut self, at: usize) -> Option<&mut Part> {
        self.parts.get_mut(at)
    }

    /// The last part.
    pub(crate) fn last_mut(&mut self) -> Option<&mut Part> {
        self.parts.last_mut()
    }

    /// The finished reply. Some servers say `stop` although they called a tool; the calls decide.
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
        // Blocks that were opened and never filled say nothing.
        let says_something = |part: &Part| match part {
            Part::Text { text, signature } => !text.is_empty() || signature.is_some(),
            Part::Thinking(thinking) => *thinking != Thinking::default(),
            Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => true,
        };
        DecodedReply {
            parts: self.parts.into_iter().filter(says_something).collect(),
            stop,
            usage,
        }
    }
}
