//! Decodes replies. A stream is a list of deltas to one message; `finish_reason` ends the message,
//! and usage may follow.

use haft_types::{StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::assembly::{CallIds, DecodedReply, ReplyParts};
use crate::wire::openai::{self, InputTokenDetails, OutputTokenDetails};
use crate::wire::{Decode, Fault, ReplyProgress, Sink, json, parse_json, require_field};

pub(crate) struct ChatDecoder {
    assembly: ReplyParts,
    ids: CallIds,
    calls: Vec<ChatCallSlot>,
    stop: Option<StopReason>,
    usage: Usage,
}

/// A tool call that is still being received.
struct ChatCallSlot {
    index: Option<u64>,
    id: String,
    part: usize,
}

#[derive(Deserialize)]
struct ChatChunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<ChatChoice<'a>>>,
    #[serde(default, deserialize_with = "json::deserialize_lenient")]
    usage: Option<ChatUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ChatChoice<'a> {
    #[serde(borrow)]
    delta: Option<ChatDelta<'a>>,
    #[serde(borrow)]
    message: Option<ChatDelta<'a>>,
    finish_reason: Option<String>,
    /// The token usage, which one provider sends inside the choice of a streamed reply.
    #[serde(default, deserialize_with = "json::deserialize_lenient")]
    usage: Option<ChatUsage>,
}

/// The content of a `delta` or `message` field.
#[derive(Deserialize)]
struct ChatDelta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    refusal: Option<String>,
    /// The reasoning, in the field that many servers use.
    reasoning_content: Option<String>,
    /// The reasoning, in the field that some servers use instead of `reasoning_content`; not always
    /// a string.
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ChatCallDelta<'a>>>,
}

#[derive(Deserialize)]
struct ChatCallDelta<'a> {
    index: Option<u64>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<ChatFunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct ChatFunctionDelta<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ChatContentPiece {
    text: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChatUsage {
    #[serde(default, deserialize_with = "json::deserialize_count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::deserialize_count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::deserialize_lenient")]
    prompt_tokens_details: Option<InputTokenDetails>,
    #[serde(default, deserialize_with = "json::deserialize_lenient")]
    completion_tokens_details: Option<OutputTokenDetails>,
    /// The number of cached tokens, which two compatible providers report in this field rather than
    /// in the details.
    #[serde(default, deserialize_with = "json::deserialize_count")]
    prompt_cache_hit_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::deserialize_count")]
    cached_tokens: Option<u64>,
}

impl Decode for ChatDecoder {
    fn read_event(&mut self, data: &str, sink: Sink<'_>) -> Result<ReplyProgress, Fault> {
        if data.trim() == "[DONE]" {
            return if self.stop.is_some() {
                Ok(ReplyProgress::Done)
            } else {
                Err(Fault::Bad(
                    "the stream ended without `finish_reason`".into(),
                ))
            };
        }
        self.read_chunk(data, sink)?;
        Ok(if self.stop.is_some() {
            ReplyProgress::Ended
        } else {
            ReplyProgress::Going
        })
    }

    fn read_body(&mut self, body: &str, sink: Sink<'_>) -> Result<(), Fault> {
        self.read_chunk(body, sink)?;
        require_field(self.stop.as_ref(), "finish_reason").map(|_| ())
    }

    fn finish(self: Box<Self>) -> DecodedReply {
        self.assembly.finish(self.stop, self.usage)
    }
}

impl ChatDecoder {
    pub(crate) fn new(ids: CallIds) -> Self {
        Self {
            assembly: ReplyParts::default(),
            ids,
            calls: Vec::new(),
            stop: None,
            usage: Usage::default(),
        }
    }

    fn read_chunk(&mut self, data: &str, sink: Sink<'_>) -> Result<(), Fault> {
        let chunk: ChatChunk<'_> = parse_json("an event", data)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Fault::Reported(serde_json::json!({ "error": error })));
        }
        if chunk.choices.is_none() && chunk.usage.is_none() {
            return Err(Fault::Bad("`choices` is missing".into()));
        }
        // Requests never ask for more than one choice.
        let mut choice = chunk.choices.into_iter().flatten().next();
        if let Some(usage) = chunk.usage.or_else(|| choice.as_mut()?.usage.take()) {
            self.usage = to_neutral_usage(usage);
        }
        let Some(choice) = choice else { return Ok(()) };
        for delta in [choice.delta, choice.message].into_iter().flatten() {
            self.read_delta(delta, sink)?;
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            let stop = parse_stop_reason(reason);
            self.close_calls(&stop, sink);
            self.stop = Some(stop);
        }
        Ok(())
    }

    fn read_delta(&mut self, delta: ChatDelta<'_>, sink: Sink<'_>) -> Result<(), Fault> {
        if let Some(reasoning) = delta.reasoning_content {
            self.assembly.push_thinking(&reasoning, sink);
        } else if let Some(reasoning) = delta
            .reasoning
            .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
        {
            self.assembly.push_thinking(&reasoning, sink);
        }
        if let Some(content) = delta.content {
            self.read_content(content, sink)?;
        }
        if let Some(refusal) = delta.refusal {
            self.assembly.push_text(&refusal, sink);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            if self.stop.is_some() {
                return Err(Fault::Bad("a call after the end of the message".into()));
            }
            self.read_call(call, sink)?;
        }
        Ok(())
    }

    /// Reads the content of a reply: a text or, from a few servers, a list of pieces.
    fn read_content(&mut self, content: &RawValue, sink: Sink<'_>) -> Result<(), Fault> {
        if content.get().starts_with('[') {
            let pieces: Vec<ChatContentPiece> = parse_json("`content`", content.get())?;
            for piece in pieces {
                self.assembly
                    .push_text(piece.text.as_deref().unwrap_or_default(), sink);
            }
            return Ok(());
        }
        let text: Option<String> = parse_json("`content`", content.get())?;
        self.assembly
            .push_text(text.as_deref().unwrap_or_default(), sink);
        Ok(())
    }

    fn read_call(&mut self, call: ChatCallDelta<'_>, sink: Sink<'_>) -> Result<(), Fault> {
        let given_id = call.id.filter(|id| !id.is_empty());
        let (name, arguments) = call
            .function
            .map_or((None, None), |function| (function.name, function.arguments));
        let name = name.filter(|name| !name.is_empty());
        let known = self.find_call(call.index, given_id.as_deref(), name.is_some());
        let at = if let Some(at) = known {
            at
        } else {
            let name =
                name.ok_or_else(|| Fault::Bad("a tool call begins without a name".into()))?;
            let id = given_id.unwrap_or_else(|| self.ids.next_id(&name));
            let part = self.assembly.open_call(id.clone(), name, sink);
            self.calls.push(ChatCallSlot {
                index: call.index,
                id,
                part,
            });
            part
        };
        if let Some(arguments) = arguments {
            // The protocol specifies a string; a few servers send the object itself.
            let piece: Option<String> = if arguments.get().starts_with('{') {
                Some(arguments.get().to_owned())
            } else {
                parse_json("`arguments`", arguments.get())?
            };
            self.assembly
                .push_arguments(at, piece.as_deref().unwrap_or_default(), sink);
        }
        Ok(())
    }

    /// Returns the index of the part that holds the call to which a piece belongs, or `None` if the
    /// piece begins a new call.
    fn find_call(&self, index: Option<u64>, id: Option<&str>, named: bool) -> Option<usize> {
        let slot = match index {
            Some(_) => self.calls.iter().rev().find(|slot| slot.index == index),
            None => self.calls.last(),
        }?;
        // Some servers number every call 0: a name with a new id begins a new call.
        let other = named && id.is_some_and(|id| id != slot.id);
        // Without a number, a piece with a name begins a call even if it has no id.
        let unnumbered = index.is_none() && named && id.is_none();
        (!other && !unnumbered).then_some(slot.part)
    }

    /// Reports the end of all calls to the sink when the message has ended: the protocol does not
    /// mark the end of a single call. If the message was truncated, the last call is not closed.
    fn close_calls(&mut self, stop: &StopReason, sink: Sink<'_>) {
        let cut = usize::from(*stop == StopReason::Length);
        let whole = self.calls.len().saturating_sub(cut);
        for slot in self.calls.drain(..).take(whole) {
            self.assembly.close_call(slot.part, sink);
        }
    }
}

fn parse_stop_reason(reason: String) -> StopReason {
    match reason.as_str() {
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" => StopReason::Length,
        "content_filter" => StopReason::Refusal,
        _ => StopReason::Other(reason),
    }
}

fn to_neutral_usage(usage: ChatUsage) -> Usage {
    let mut details = usage.prompt_tokens_details.unwrap_or_default();
    details.cached_tokens = details
        .cached_tokens
        .or(usage.prompt_cache_hit_tokens)
        .or(usage.cached_tokens);
    openai::to_neutral_usage(
        usage.prompt_tokens,
        details,
        usage.completion_tokens,
        usage.completion_tokens_details,
    )
}
