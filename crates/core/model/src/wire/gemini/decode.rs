//! Decodes replies. A stream is a list of partial responses; the candidate's `finishReason` ends
//! the message.

use haft_types::{Part, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::assembly::{CallIds, DecodedReply, ReplyParts};
use crate::wire::{Decode, Fault, ReplyProgress, Sink, json, parse_json, require_field};

pub(crate) struct GeminiDecoder {
    assembly: ReplyParts,
    ids: CallIds,
    /// The text of the last event that contained a call, kept to detect a repeated event.
    last_call: String,
    stop: Option<StopReason>,
    usage: Usage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBody<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<GeminiCandidate<'a>>>,
    prompt_feedback: Option<GeminiFeedback>,
    #[serde(default, deserialize_with = "json::deserialize_lenient")]
    usage_metadata: Option<GeminiUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate<'a> {
    #[serde(borrow)]
    content: Option<GeminiContent<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct GeminiContent<'a> {
    #[serde(borrow)]
    parts: Option<Vec<GeminiReplyPart<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiReplyPart<'a> {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    thought_signature: Option<String>,
    #[serde(borrow)]
    function_call: Option<GeminiReplyCall<'a>>,
}

#[derive(Deserialize)]
struct GeminiReplyCall<'a> {
    id: Option<String>,
    name: String,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiFeedback {
    block_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GeminiUsage {
    #[serde(
        rename = "promptTokenCount",
        deserialize_with = "json::deserialize_count"
    )]
    prompt: Option<u64>,
    #[serde(
        rename = "toolUsePromptTokenCount",
        deserialize_with = "json::deserialize_count"
    )]
    tool_use_prompt: Option<u64>,
    #[serde(
        rename = "cachedContentTokenCount",
        deserialize_with = "json::deserialize_count"
    )]
    cached: Option<u64>,
    #[serde(
        rename = "candidatesTokenCount",
        deserialize_with = "json::deserialize_count"
    )]
    candidates: Option<u64>,
    #[serde(
        rename = "thoughtsTokenCount",
        deserialize_with = "json::deserialize_count"
    )]
    thoughts: Option<u64>,
}

impl Decode for GeminiDecoder {
    fn read_event(&mut self, data: &str, sink: Sink<'_>) -> Result<ReplyProgress, Fault> {
        self.read_response(data, sink)?;
        Ok(if self.stop.is_some() {
            ReplyProgress::Ended
        } else {
            ReplyProgress::Going
        })
    }

    fn read_body(&mut self, body: &str, sink: Sink<'_>) -> Result<(), Fault> {
        self.read_response(body, sink)?;
        require_field(self.stop.as_ref(), "finishReason").map(|_| ())
    }

    fn finish(self: Box<Self>) -> DecodedReply {
        self.assembly.finish(self.stop, self.usage)
    }
}

impl GeminiDecoder {
    pub(crate) fn new(ids: CallIds) -> Self {
        Self {
            assembly: ReplyParts::default(),
            ids,
            last_call: String::new(),
            stop: None,
            usage: Usage::default(),
        }
    }

    fn read_response(&mut self, data: &str, sink: Sink<'_>) -> Result<(), Fault> {
        let response: GeminiBody<'_> = parse_json("an event", data)?;
        if let Some(error) = response.error {
            return Err(Fault::Reported(serde_json::json!({ "error": error })));
        }
        let blocked = response
            .prompt_feedback
            .and_then(|feedback| feedback.block_reason);
        if response.candidates.is_none() && response.usage_metadata.is_none() && blocked.is_none() {
            return Err(Fault::Bad("`candidates` is missing".into()));
        }
        if let Some(usage) = &response.usage_metadata {
            self.usage = to_neutral_usage(usage);
        }
        if blocked.is_some() {
            self.stop = Some(StopReason::Refusal);
        }
        // Requests never ask for more than one candidate.
        let Some(candidate) = response.candidates.into_iter().flatten().next() else {
            return Ok(());
        };
        let parts = candidate
            .content
            .and_then(|content| content.parts)
            .unwrap_or_default();
        if parts.iter().any(|part| part.function_call.is_some()) {
            self.reject_repeated_calls(data)?;
        }
        for part in parts {
            self.read_part(part, sink);
        }
        if let Some(reason) = candidate.finish_reason {
            self.stop = Some(parse_stop_reason(reason));
        }
        Ok(())
    }

    /// Rejects an event that is equal to the last event with calls. Calls often have no id in this
    /// API, so a repeated event would run its calls twice.
    fn reject_repeated_calls(&mut self, data: &str) -> Result<(), Fault> {
        if self.stop.is_some() {
            return Err(Fault::Bad("a call after the end of the message".into()));
        }
        if self.last_call == data {
            return Err(Fault::Bad("an event with a call came twice".into()));
        }
        data.clone_into(&mut self.last_call);
        Ok(())
    }

    fn read_part(&mut self, part: GeminiReplyPart<'_>, sink: Sink<'_>) {
        if let Some(call) = part.function_call {
            let id = call
                .id
                .filter(|id| !id.is_empty())
                .unwrap_or_else(|| self.ids.next_id(&call.name));
            let at = self.assembly.open_call(id, call.name, sink);
            self.assembly
                .push_arguments(at, call.args.map_or("{}", RawValue::get), sink);
            if let Some(Part::ToolCall(call)) = self.assembly.part_mut(at) {
                call.signature = part.thought_signature;
            }
            self.assembly.close_call(at, sink);
            return;
        }
        // Requests do not enable code execution or other kinds of parts.
        let Some(text) = part.text else { return };
        if part.thought {
            self.assembly.push_thinking(&text, sink);
            if let (Some(Part::Thinking(thinking)), Some(signature)) =
                (self.assembly.last_mut(), part.thought_signature)
            {
                thinking.signature = Some(signature);
            }
            return;
        }
        match part.thought_signature {
            None => self.assembly.push_text(&text, sink),
            // A signed piece stays a separate part: the signature must go back on exactly this
            // text.
            Some(signature) => {
                let at = self.assembly.push_part(Part::from_text(""));
                self.assembly.push_text(&text, sink);
                if let Some(Part::Text {
                    signature: place, ..
                }) = self.assembly.part_mut(at)
                {
                    *place = Some(signature);
                }
            }
        }
    }
}

fn parse_stop_reason(reason: String) -> StopReason {
    match reason.as_str() {
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => StopReason::Refusal,
        _ => StopReason::Other(reason),
    }
}

/// Converts token counts to the form that all APIs share. Gemini's prompt count includes cached
/// tokens; its candidate count excludes thoughts.
fn to_neutral_usage(usage: &GeminiUsage) -> Usage {
    let prompt = usage.prompt.unwrap_or(0);
    let tool_use = usage.tool_use_prompt.unwrap_or(0);
    let cached = usage.cached.unwrap_or(0);
    let thoughts = usage.thoughts.unwrap_or(0);
    Usage {
        input: (prompt + tool_use).saturating_sub(cached),
        cached_input: cached,
        cache_write: 0,
        output: usage.candidates.unwrap_or(0) + thoughts,
        reasoning: thoughts,
    }
}
