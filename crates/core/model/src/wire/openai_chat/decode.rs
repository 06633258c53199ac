//! Replies. A stream is a list of deltas to one message; `finish_reason` ends it, and usage may follow.

use haft_types::{StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::assembly::{Assembly, CallIds, Decoded};
use crate::wire::{Decode, Fault, Progress, Sink, json, parse, required};

pub(crate) struct Decoder {
    assembly: Assembly,
    ids: CallIds,
    calls: Vec<Slot>,
    stop: Option<StopReason>,
    usage: Usage,
}

/// A call under construction.
struct Slot {
    index: Option<u64>,
    id: String,
    part: usize,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default, deserialize_with = "json::lenient")]
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Words<'a>>,
    #[serde(borrow)]
    message: Option<Words<'a>>,
    finish_reason: Option<String>,
}

/// What `delta` and `message` hold.
#[derive(Deserialize)]
struct Words<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    refusal: Option<String>,
    /// Where many servers put the reasoning.
    reasoning_content: Option<String>,
    /// Where others put it; not always a text.
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<WireCall<'a>>>,
}

#[derive(Deserialize)]
struct WireCall<'a> {
    index: Option<u64>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ContentPiece {
    text: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    #[serde(default, deserialize_with = "json::count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::lenient")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default, deserialize_with = "json::lenient")]
    completion_tokens_details: Option<CompletionDetails>,
    /// Where two compatible providers count what came from the cache.
    #[serde(default, deserialize_with = "json::count")]
    prompt_cache_hit_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::count")]
    cached_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    #[serde(default, deserialize_with = "json::count")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::count")]
    cache_write_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "json::count")]
    reasoning_tokens: Option<u64>,
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, sink: Sink<'_>) -> Result<Progress, Fault> {
        if data.trim() == "[DONE]" {
            return if self.stop.is_some() {
                Ok(Progress::Done)
            } else {
                Err(Fault::Bad("the stream ended without `finish_reason`".into()))
            };
        }
        self.chunk(data, sink)?;
        Ok(if self.stop.is_some() { Progress::Ended } else { Progress::Going })
    }

    fn body(&mut self, body: &str, sink: Sink<'_>) -> Result<(), Fault> {
        self.chunk(body, sink)?;
        required(self.stop.as_ref(), "finish_reason").map(|_| ())
    }

    fn finish(self: Box<Self>) -> Decoded {
        self.assembly.finish(self.stop, self.usage)
    }
}

impl Decoder {
    pub(crate) fn new(ids: CallIds) -> Self {
        Self { assembly: Assembly::default(), ids, calls: Vec::new(), stop: None, usage: Usage::default() }
    }

    fn chunk(&mut self, data: &str, sink: Sink<'_>) -> Result<(), Fault> {
        let chunk: Chunk<'_> = parse("an event", data)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Fault::Reported(serde_json::json!({ "error": error })));
        }
        if chunk.choices.is_none() && chunk.usage.is_none() {
            return Err(Fault::Bad("`choices` is missing".into()));
        }
        if let Some(usage) = chunk.usage {
            self.usage = neutral(&usage);
        }
        // Only one choice is ever asked for.
        let Some(choice) = chunk.choices.into_iter().flatten().next() else { return Ok(()) };
        for words in [choice.delta, choice.message].into_iter().flatten() {
            self.words(words, sink)?;
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            let stop = stop_reason(reason);
            self.close_calls(&stop, sink);
            self.stop = Some(stop);
        }
        Ok(())
    }

    fn words(&mut self, words: Words<'_>, sink: Sink<'_>) -> Result<(), Fault> {
        if let Some(reasoning) = words.reasoning_content {
            self.assembly.thinking(&reasoning, sink);
        } else if let Some(reasoning) = words.reasoning.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok()) {
            self.assembly.thinking(&reasoning, sink);
        }
        if let Some(content) = words.content {
            self.content(content, sink)?;
        }
        if let Some(refusal) = words.refusal {
            self.assembly.text(&refusal, sink);
        }
        for call in words.tool_calls.into_iter().flatten() {
            if self.stop.is_some() {
                return Err(Fault::Bad("a call after the end of the message".into()));
            }
            self.call(call, sink)?;
        }
        Ok(())
    }

    /// A text, or (from a few servers) a list of pieces.
    fn content(&mut self, content: &RawValue, sink: Sink<'_>) -> Result<(), Fault> {
        if content.get().starts_with('[') {
            let pieces: Vec<ContentPiece> = parse("`content`", content.get())?;
            for piece in pieces {
                self.assembly.text(piece.text.as_deref().unwrap_or_default(), sink);
            }
            return Ok(());
        }
        let text: Option<String> = parse("`content`", content.get())?;
        self.assembly.text(text.as_deref().unwrap_or_default(), sink);
        Ok(())
    }

    fn call(&mut self, call: WireCall<'_>, sink: Sink<'_>) -> Result<(), Fault> {
        let given_id = call.id.filter(|id| !id.is_empty());
        let (name, arguments) = call.function.map_or((None, None), |function| (function.name, function.arguments));
        let name = name.filter(|name| !name.is_empty());
        let known = self.find(call.index, given_id.as_deref(), name.is_some());
        let at = if let Some(at) = known {
            at
        } else {
            let name = name.ok_or_else(|| Fault::Bad("a tool call begins without a name".into()))?;
            let id = given_id.unwrap_or_else(|| self.ids.next(&name));
            let part = self.assembly.call(id.clone(), name, sink);
            self.calls.push(Slot { index: call.index, id, part });
            part
        };
        if let Some(arguments) = arguments {
            // A text by the protocol; a few servers send the object itself.
            let piece: Option<String> = if arguments.get().starts_with('{') {
                Some(arguments.get().to_owned())
            } else {
                parse("`arguments`", arguments.get())?
            };
            self.assembly.arguments(at, piece.as_deref().unwrap_or_default(), sink);
        }
        Ok(())
    }

    /// The call a piece belongs to; `None` when it begins a new one.
    fn find(&self, index: Option<u64>, id: Option<&str>, named: bool) -> Option<usize> {
        let slot = match index {
            Some(_) => self.calls.iter().rev().find(|slot| slot.index == index),
            None => self.calls.last(),
        }?;
        // Some servers number every call 0: a name with an id of its own is a call of its own.
        let other = named && id.is_some_and(|id| id != slot.id);
        // Without a number, a piece with a name begins a call even if it has no id.
        let unnumbered = index.is_none() && named && id.is_none();
        (!other && !unnumbered).then_some(slot.part)
    }

    /// Nothing marks the end of a call but the end of the message; when that is a cut, the last call is not closed.
    fn close_calls(&mut self, stop: &StopReason, sink: Sink<'_>) {
        let cut = usize::from(*stop == StopReason::Length);
        let whole = self.calls.len().saturating_sub(cut);
        for slot in self.calls.drain(..).take(whole) {
            self.assembly.close_call(slot.part, sink);
        }
    }
}

fn stop_reason(reason: String) -> StopReason {
    match reason.as_str() {
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" => StopReason::Length,
        "content_filter" => StopReason::Refusal,
        _ => StopReason::Other(reason),
    }
}

/// The prompt is counted whole; what was read from the cache and written to it is part of it.
fn neutral(usage: &WireUsage) -> Usage {
    let details = usage.prompt_tokens_details.as_ref();
    let cached = details
        .and_then(|details| details.cached_tokens)
        .or(usage.prompt_cache_hit_tokens)
        .or(usage.cached_tokens)
        .unwrap_or(0);
    let written = details.and_then(|details| details.cache_write_tokens).unwrap_or(0);
    Usage {
        input: usage.prompt_tokens.unwrap_or(0).saturating_sub(cached + written),
        cached_input: cached,
        cache_write: written,
        output: usage.completion_tokens.unwrap_or(0),
        reasoning: usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens).unwrap_or(0),
    }
}
