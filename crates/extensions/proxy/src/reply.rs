//! Parses recorded replies: their parts, usage and completeness. Supports streams and complete
//! bodies of all four APIs.

use haft_types::{Part, ToolCall, Usage};
use serde_json::Value;

use crate::message_parts::{build_thinking_part, parse_part};

/// A parsed reply, which may be incomplete.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RecordedReply {
    pub(crate) parts: Vec<Part>,
    /// The usage that the provider reported.
    pub(crate) usage: Option<Usage>,
    /// True if the reply contains the end marker of its protocol.
    pub(crate) complete: bool,
}

/// Parses the body of a reply, which may be a stream of events, a JSON list or a single JSON value.
pub(crate) fn parse_reply(body: &str) -> RecordedReply {
    let mut reply = ReplyReader::default();
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        // Without `alt=sse`, Gemini streams a single JSON list.
        match &value {
            Value::Array(list) => list.iter().for_each(|event| reply.read_event(event)),
            _ => reply.read_event(&value),
        }
        return reply.finish();
    }
    for data in body.lines().filter_map(|line| line.strip_prefix("data:")) {
        match data.trim() {
            "[DONE]" => reply.complete = true,
            data => {
                if let Ok(event) = serde_json::from_str::<Value>(data) {
                    reply.read_event(&event);
                }
            }
        }
    }
    reply.finish()
}

#[derive(Default)]
struct ReplyReader {
    parts: Vec<Part>,
    usage: Option<Usage>,
    complete: bool,
    /// The tool calls of the chat API, whose streamed pieces refer to a call by index.
    calls: Vec<ToolCall>,
    /// The streamed arguments of the current block.
    arguments: String,
}

impl ReplyReader {
    fn read_event(&mut self, event: &Value) {
        let kind = event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind {
            "message_start" => self.read_usage(event.pointer("/message/usage")),
            "content_block_start" => self.begin_block(event.get("content_block")),
            "content_block_delta" => self.extend_block(event.get("delta")),
            "content_block_stop" => self.end_block(),
            "message_delta" => self.read_usage(event.get("usage")),
            "message_stop" => self.complete = true,
            "message" => {
                self.read_usage(event.get("usage"));
                self.add_parts(event.get("content"));
                self.complete = true;
            }
            "response.output_item.done" => self.parts.extend(
                event
                    .get("item")
                    .map(parse_response_item)
                    .unwrap_or_default(),
            ),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.read_usage(event.pointer("/response/usage"));
                self.complete = true;
            }
            _ if kind.starts_with("response.") => {}
            _ => self.read_untyped(event),
        }
    }

    /// Reads an event of a stream, or a complete body, that has no `type` field.
    fn read_untyped(&mut self, event: &Value) {
        self.read_usage(event.get("usage").or(event.get("usageMetadata")));
        if let Some(output) = event.get("output").and_then(Value::as_array) {
            self.parts
                .extend(output.iter().flat_map(parse_response_item));
            self.complete = true;
        }
        if let Some(choice) = event.pointer("/choices/0") {
            let message = choice
                .get("delta")
                .or(choice.get("message"))
                .unwrap_or(&Value::Null);
            self.read_chat_message(message);
            self.complete |= choice.get("finish_reason").is_some_and(Value::is_string);
        }
        if let Some(candidate) = event.pointer("/candidates/0") {
            self.add_parts(candidate.pointer("/content/parts"));
            self.complete |= candidate.get("finishReason").is_some();
        }
    }

    fn add_parts(&mut self, list: Option<&Value>) {
        for one in list
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(parse_part)
        {
            match one {
                Part::Text { text, .. } => self.push_text(&text),
                Part::Thinking(thinking) => self.push_thinking(&thinking.text),
                Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => self.parts.push(one),
            }
        }
    }

    fn push_text(&mut self, piece: &str) {
        match self.parts.last_mut() {
            Some(Part::Text { text, .. }) => text.push_str(piece),
            _ if piece.is_empty() => {}
            _ => self.parts.push(Part::from_text(piece)),
        }
    }

    fn push_thinking(&mut self, piece: &str) {
        match self.parts.last_mut() {
            Some(Part::Thinking(thinking)) => thinking.text.push_str(piece),
            _ if piece.is_empty() => {}
            _ => self.parts.push(build_thinking_part(piece)),
        }
    }

    fn read_chat_message(&mut self, message: &Value) {
        let text = |key: &str| message.get(key).and_then(Value::as_str);
        if let Some(piece) = text("reasoning_content").or(text("reasoning")) {
            self.push_thinking(piece);
        }
        if let Some(piece) = text("content") {
            self.push_text(piece);
        }
        for (place, call) in message
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            let index = call
                .get("index")
                .and_then(Value::as_u64)
                .map_or(place, |index| index as usize);
            // An index out of order is an error of the server. The pieces with that index become a
            // call of their own.
            if index >= self.calls.len() {
                let (id, name, arguments) = Default::default();
                self.calls.push(ToolCall {
                    id,
                    name,
                    arguments,
                    signature: None,
                });
            }
            let last = self.calls.len() - 1;
            let Some(known) = self.calls.get_mut(index.min(last)) else {
                continue;
            };
            let piece = |path: &str| {
                call.pointer(path)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            known.id.push_str(piece("/id"));
            known.name.push_str(piece("/function/name"));
            known.arguments.push_str(piece("/function/arguments"));
        }
    }

    fn begin_block(&mut self, block: Option<&Value>) {
        self.arguments.clear();
        let Some(block) = block else { return };
        match block.get("type").and_then(Value::as_str) {
            Some("thinking") => self.parts.push(build_thinking_part(
                block["thinking"].as_str().unwrap_or_default(),
            )),
            Some("text") => self
                .parts
                .push(Part::from_text(block["text"].as_str().unwrap_or_default())),
            _ => self.parts.extend(parse_part(block)),
        }
    }

    fn extend_block(&mut self, delta: Option<&Value>) {
        let piece = |key: &str| {
            delta
                .and_then(|delta| delta.get(key))
                .and_then(Value::as_str)
        };
        if let Some(json) = piece("partial_json") {
            self.arguments.push_str(json);
        } else if let Some(text) = piece("text") {
            self.push_text(text);
        } else if let Some(text) = piece("thinking") {
            self.push_thinking(text);
        }
    }

    fn end_block(&mut self) {
        if let Some(Part::ToolCall(call)) = self.parts.last_mut()
            && !self.arguments.is_empty()
        {
            call.arguments = std::mem::take(&mut self.arguments);
        }
    }

    /// Records the token counts that a provider reports, converted to classes that do not overlap.
    /// Later counts in a stream replace earlier ones.
    fn read_usage(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else {
            return;
        };
        let number = |path: &str| usage.pointer(path).and_then(Value::as_u64);
        let known = self.usage.unwrap_or_default();
        let cached = number("/cache_read_input_tokens")
            .or(number("/prompt_tokens_details/cached_tokens"))
            .or(number("/input_tokens_details/cached_tokens"))
            .or(number("/prompt_cache_hit_tokens"))
            .or(number("/cachedContentTokenCount"));
        let written = number("/cache_creation_input_tokens")
            .or(number("/input_tokens_details/cache_write_tokens"));
        let all = number("/prompt_tokens").or(number("/promptTokenCount"));
        // Anthropic's input excludes the tokens that were read from or written to the cache. The
        // other providers' input includes them.
        let excludes_cached = usage.get("cache_read_input_tokens").is_some()
            || usage.get("input_tokens_details").is_none();
        let cached_input = cached.unwrap_or(known.cached_input);
        let cache_write = written.unwrap_or(known.cache_write);
        let input = match (all, number("/input_tokens")) {
            (Some(all), _) => all.saturating_sub(cached_input + cache_write),
            (None, Some(input)) if excludes_cached => input,
            (None, Some(input)) => input.saturating_sub(cached_input + cache_write),
            (None, None) => known.input,
        };
        let thoughts = number("/thoughtsTokenCount").unwrap_or_default();
        let output = number("/completion_tokens")
            .or(number("/output_tokens"))
            .or(number("/candidatesTokenCount").map(|output| output + thoughts));
        let reasoning = number("/completion_tokens_details/reasoning_tokens")
            .or(number("/output_tokens_details/reasoning_tokens"))
            .unwrap_or(thoughts.max(known.reasoning));
        let output = output.unwrap_or(known.output);
        self.usage = Some(Usage {
            input,
            cached_input,
            cache_write,
            output,
            reasoning,
        });
    }

    fn finish(mut self) -> RecordedReply {
        self.parts
            .extend(self.calls.into_iter().map(Part::ToolCall));
        self.parts
            .retain(|part| !matches!(part, Part::Text { text, .. } if text.is_empty()));
        RecordedReply {
            parts: self.parts,
            usage: self.usage,
            complete: self.complete,
        }
    }
}

/// Returns the parts of an output item of the Responses API.
fn parse_response_item(item: &Value) -> Vec<Part> {
    match item.get("content").and_then(Value::as_array) {
        Some(content) if item.get("type").and_then(Value::as_str) != Some("reasoning") => {
            content.iter().filter_map(parse_part).collect()
        }
        _ => parse_part(item).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, name: &str, arguments: &str) -> Part {
        let id = id.to_owned();
        let name = name.to_owned();
        let arguments = arguments.to_owned();
        Part::ToolCall(ToolCall {
            id,
            name,
            arguments,
            signature: None,
        })
    }

    fn usage(input: u64, cached_input: u64, cache_write: u64, output: u64) -> Usage {
        Usage {
            input,
            cached_input,
            cache_write,
            output,
            reasoning: 0,
        }
    }

    #[test]
    fn read_parses_streams_of_every_api() {
        let chat = "data: {\"choices\":[{\"delta\":{\"content\":\"he\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"llo\",\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\ndata: [DONE]\n\n";
        let parts = vec![Part::from_text("hello"), call("a", "f", "{}")];
        assert_eq!(
            parse_reply(chat),
            RecordedReply {
                parts,
                usage: Some(usage(6, 4, 0, 3)),
                complete: true
            }
        );

        let anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":7,\"cache_creation_input_tokens\":2,\"output_tokens\":1}}}\n\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\ndata: {\"type\":\"content_block_stop\"}\n\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\\\":1}\"}}\n\ndata: {\"type\":\"content_block_stop\"}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n";
        let parts = vec![Part::from_text("hi"), call("a", "f", "{\"x\":1}")];
        let cut = RecordedReply {
            parts: parts.clone(),
            usage: Some(usage(5, 7, 2, 9)),
            complete: false,
        };
        assert_eq!(parse_reply(anthropic), cut, "it was cut before its end");
        let whole = format!("{anthropic}data: {{\"type\":\"message_stop\"}}\n\n");
        assert_eq!(
            parse_reply(&whole),
            RecordedReply {
                complete: true,
                ..cut
            }
        );

        let responses = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\ndata: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"hi\"}]}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[],\"usage\":{\"input_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":8},\"output_tokens\":2}}}\n\n";
        assert_eq!(
            parse_reply(responses),
            RecordedReply {
                parts: vec![Part::from_text("hi")],
                usage: Some(usage(1, 8, 0, 2)),
                complete: true
            }
        );

        let gemini = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"h\"}]}}]}\r\n\r\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"i\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":9,\"cachedContentTokenCount\":3,\"candidatesTokenCount\":2}}\r\n\r\n";
        assert_eq!(
            parse_reply(gemini),
            RecordedReply {
                parts: vec![Part::from_text("hi")],
                usage: Some(usage(6, 3, 0, 2)),
                complete: true
            }
        );
    }

    #[test]
    fn read_parses_whole_bodies_of_every_api() {
        let table = [
            r#"{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":1}}"#,
            r#"{"type":"message","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":4,"output_tokens":1}}"#,
            r#"{"object":"response","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":4,"output_tokens":1}}"#,
            r#"[{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":1}}]"#,
        ];
        for body in table {
            let expected = RecordedReply {
                parts: vec![Part::from_text("hi")],
                usage: Some(usage(4, 0, 0, 1)),
                complete: true,
            };
            assert_eq!(parse_reply(body), expected, "{body}");
        }
        assert_eq!(parse_reply("<html>"), RecordedReply::default());
        assert_eq!(
            parse_reply(r#"{"error":{"message":"slow down"}}"#),
            RecordedReply::default()
        );
    }
}
