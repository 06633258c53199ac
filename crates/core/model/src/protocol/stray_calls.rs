//! Parses calls that a small model writes as text although the API has native calls.
//!
//! Text is parsed as calls only if it can mean nothing else: the model finished its turn without a
//! native call, and its text consists of calls only, each naming an offered tool with its
//! arguments. Any other text beside them makes the reply an answer about calls, and text that
//! repeats a message of the conversation is a quotation. A reply that is clearly a call but cannot
//! run (its JSON is broken, or no tool has its name) is passed on as it is, and the model is told
//! the problem.
//!
//! Invariant: an incomplete call is never run.

mod forms;

use std::borrow::Cow;

use haft_types::{ModelProfile, ModelSpec, Part, Request, Role, StopReason, ToolCall};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::wire::{CallIds, Decode, DecodedReply, Fault, Notation, ReplyProgress, Sink};

/// The key in the context of a result under which a call stands that haft printed for the model to
/// send: an object with `name` and `arguments`. A model may repeat such a call.
pub const NEXT_CALL_KEY: &str = "next_call";

/// The minimum length of a line that repeats a result, in bytes and without white space.
const MIN_REPEATED_BYTES: usize = 8;

/// True if this call was parsed from text although the API has native calls.
pub fn was_read_from_text(call: &ToolCall) -> bool {
    CallIds::is_from_text(&call.id)
}

/// True if this call was parsed from text that is not JSON: braces were doubled, or a text was in
/// triple quotes.
pub fn was_converted_to_json(call: &ToolCall) -> bool {
    CallIds::is_converted(&call.id)
}

/// Parses the calls that a small model wrote as text in its reply.
struct StrayCallParser {
    ids: CallIds,
    /// The names of the tools that the request offers.
    tools: Vec<String>,
    /// The user messages and tool results in the request, normalized for comparison.
    said: Vec<String>,
    /// The tool results in the request, normalized for comparison.
    results: Vec<String>,
    /// The calls that haft printed for the model to send.
    printed: Vec<Value>,
}

impl StrayCallParser {
    fn new(request: &Request, ids: CallIds) -> Self {
        let tools = request
            .tools
            .specs
            .iter()
            .chain(&request.tools.deferred)
            .map(|tool| tool.name.clone())
            .collect();
        let heard = request
            .segments
            .iter()
            .map(|segment| &segment.entry.message);
        let said = heard
            .filter(|message| matches!(message.role, Role::User | Role::Tool))
            .flat_map(|message| {
                let results = message
                    .tool_results()
                    .map(|result| normalize(&result.envelope.text));
                results.chain([normalize(&message.joined_text())])
            });
        let results = request
            .segments
            .iter()
            .flat_map(|segment| segment.entry.message.tool_results());
        let printed =
            results.filter_map(|result| result.envelope.context.get(NEXT_CALL_KEY).cloned());
        let texts = request
            .segments
            .iter()
            .flat_map(|segment| segment.entry.message.tool_results())
            .map(|result| normalize(&result.envelope.text));
        Self {
            results: texts.collect(),
            printed: printed.collect(),
            said: said.collect(),
            ids,
            tools,
        }
    }

    /// Returns the text after lines that repeat tool results: some models copy a result, and then
    /// make the call that the result asks for. Returns `None` if nothing is repeated, or if another
    /// line precedes the call.
    fn skip_repeated_lines<'a>(&self, text: &'a str) -> Option<&'a str> {
        let mut repeated = false;
        let mut rest = text.trim();
        while !rest.starts_with('{') {
            let (line, after) = rest.split_once('\n')?;
            if !line.starts_with("```") {
                let line = normalize(line);
                let is_known = line.len() >= MIN_REPEATED_BYTES
                    && self.results.iter().any(|result| result.contains(&line));
                if !is_known {
                    return None;
                }
                repeated = true;
            }
            rest = after.trim_start();
        }
        let rest = rest.trim_end();
        let rest = rest.strip_suffix("```").unwrap_or(rest).trim_end();
        Some(rest).filter(|_| repeated)
    }

    /// True if a message or a result contains the call, and haft did not print it for the model.
    fn is_quoted(&self, call: &WrittenCall<'_>) -> bool {
        let source = normalize(call.source);
        self.said.iter().any(|said| said.contains(&source))
            && !self.printed.iter().any(|printed| call.equals(printed))
    }

    /// Returns the parts of the reply. If its text consists of nothing but calls, the text is
    /// replaced by tool calls.
    fn convert_text(
        mut self,
        DecodedReply {
            mut parts,
            stop,
            usage,
        }: DecodedReply,
    ) -> DecodedReply {
        let mut text = String::new();
        for part in &parts {
            match part {
                Part::Text { text: piece, .. } => text.push_str(piece),
                Part::Thinking(_) => {}
                Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => {
                    return DecodedReply { parts, stop, usage };
                }
            }
        }
        let calls = if stop == StopReason::EndTurn {
            parse_calls(&text, &self.tools)
                .or_else(|| {
                    let rest = self.skip_repeated_lines(&text)?;
                    parse_calls(rest, &self.tools)
                })
                .or_else(|| parse_calls(cut_invented_result(&text)?, &self.tools))
        } else {
            None
        };
        let Some(calls) = calls.filter(|calls| !calls.iter().any(|call| self.is_quoted(call)))
        else {
            return DecodedReply { parts, stop, usage };
        };
        parts.retain(|part| !matches!(part, Part::Text { .. }));
        for WrittenCall {
            name,
            arguments,
            notation,
            ..
        } in calls
        {
            let id = self.ids.next_id_from_text(&name, notation);
            parts.push(Part::ToolCall(ToolCall {
                id,
                name,
                arguments,
                signature: None,
            }));
        }
        DecodedReply {
            parts,
            stop: StopReason::ToolUse,
            usage,
        }
    }
}

/// Wraps the decoder of an API for a small model, so that reply text that consists only of calls is
/// converted to calls.
pub(crate) fn decode_stray_calls(
    decoder: Box<dyn Decode>,
    model: &ModelSpec,
    request: &Request,
    ids: CallIds,
) -> Box<dyn Decode> {
    if model.profile == ModelProfile::Full
        || model.tool_protocol.is_text()
        || request.tools.specs.is_empty()
    {
        return decoder;
    }
    Box::new(StrayCallDecoder {
        decoder,
        calls: StrayCallParser::new(request, ids),
    })
}

struct StrayCallDecoder {
    decoder: Box<dyn Decode>,
    calls: StrayCallParser,
}

impl Decode for StrayCallDecoder {
    fn read_event(&mut self, data: &str, sink: Sink<'_>) -> Result<ReplyProgress, Fault> {
        self.decoder.read_event(data, sink)
    }

    fn read_body(&mut self, body: &str, sink: Sink<'_>) -> Result<(), Fault> {
        self.decoder.read_body(body, sink)
    }

    fn finish(self: Box<Self>) -> DecodedReply {
        self.calls.convert_text(self.decoder.finish())
    }
}

/// A call as the model wrote it in its text.
struct WrittenCall<'a> {
    name: String,
    arguments: String,
    notation: Notation,
    source: &'a str,
}

impl WrittenCall<'_> {
    /// True if `printed` is this call.
    fn equals(&self, printed: &Value) -> bool {
        let arguments = serde_json::from_str::<Value>(&self.arguments).ok();
        printed.get("name").and_then(Value::as_str) == Some(&self.name)
            && printed.get("arguments") == arguments.as_ref()
    }
}

/// Returns the calls in a text, or `None` if the text contains anything else.
fn parse_calls<'a>(text: &'a str, tools: &[String]) -> Option<Vec<WrittenCall<'a>>> {
    let text = text.trim();
    let text = match text.strip_prefix("<think>") {
        Some(thought) => thought.split_once("</think>")?.1.trim(),
        None => text,
    };
    forms::split_reply(text)?
        .into_iter()
        .map(|body| parse_call(body, tools))
        .collect()
}

/// Returns the text before a result that the model invents after its calls. Returns `None` if the
/// text contains no such result.
fn cut_invented_result(text: &str) -> Option<&str> {
    let (calls, _) = text.split_once("\n<tool_response>")?;
    Some(calls)
}

/// A call in either of two forms: `name` with `arguments`, or a `function` that contains both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallForm<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(rename = "id")]
    _id: Option<IgnoredAny>,
    #[serde(alias = "tool", alias = "tool_name")]
    name: Option<String>,
    #[serde(borrow)]
    function: Option<&'a RawValue>,
    #[serde(borrow, alias = "parameters", alias = "args", alias = "input")]
    arguments: Option<&'a RawValue>,
}

fn parse_call<'a>(source: &'a str, tools: &[String]) -> Option<WrittenCall<'a>> {
    let Some(json) = forms::convert_to_json(source) else {
        return parse_broken_call(source, tools);
    };
    let notation = match json {
        Cow::Borrowed(_) => Notation::Json,
        Cow::Owned(_) => Notation::Converted,
    };
    let CallForm {
        kind,
        _id: _,
        name,
        function,
        arguments,
    } = serde_json::from_str(&json).ok()?;
    if kind.is_some_and(|kind| !["function", "tool_call", "tool_use"].contains(&kind.as_str())) {
        return None;
    }
    let (name, arguments) = match (name, function, arguments) {
        (Some(name), None, Some(arguments)) => (name, arguments),
        (None, Some(function), Some(arguments)) => {
            (serde_json::from_str(function.get()).ok()?, arguments)
        }
        (None, Some(function), None) => match serde_json::from_str(function.get()).ok()? {
            CallForm {
                kind: None,
                _id: _,
                name: Some(name),
                function: None,
                arguments: Some(arguments),
            } => (name, arguments),
            _ => return None,
        },
        _ => return None,
    };
    // Some models write the arguments as a string that contains an object.
    let written = arguments.get();
    let arguments = serde_json::from_str::<String>(written).unwrap_or_else(|_| written.to_owned());
    let whole = serde_json::from_str::<Map<String, Value>>(&arguments).is_ok();
    // A name in the form of a tool name is meant as one.
    let looks_like_one = name.contains('_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    (whole && (looks_like_one || tools.contains(&name))).then_some(WrittenCall {
        name,
        arguments,
        notation,
        source,
    })
}

/// Recognizes a tool call in broken JSON. The whole text becomes the arguments of the call, so that
/// the call cannot run.
fn parse_broken_call<'a>(source: &'a str, tools: &[String]) -> Option<WrittenCall<'a>> {
    // Text that begins with a complete object is something else.
    if serde_json::Deserializer::from_str(source)
        .into_iter::<IgnoredAny>()
        .next()?
        .is_ok()
    {
        return None;
    }
    let word = |text: &'a str| text.trim().trim_matches(['"', '\'']);
    let (name, rest) = source.strip_prefix('{')?.split_once(',')?;
    let (key, name) = name.split_once(':')?;
    let (arguments, _) = rest.split_once(':')?;
    let named = ["name", "tool", "tool_name", "function"].contains(&word(key))
        && tools.iter().any(|tool| tool == word(name));
    let given = ["arguments", "parameters", "args", "input"].contains(&word(arguments));
    (named && given).then(|| WrittenCall {
        name: word(name).to_owned(),
        arguments: source.to_owned(),
        notation: Notation::Json,
        source,
    })
}

/// Normalizes a text for comparison: removes white space and the line numbers of `read_file`.
fn normalize(text: &str) -> String {
    let unnumbered = |line: &str| match line.split_once('\t') {
        Some((number, rest)) if number.trim().bytes().all(|byte| byte.is_ascii_digit()) => {
            rest.to_owned()
        }
        _ => line.to_owned(),
    };
    text.lines()
        .map(unnumbered)
        .collect::<String>()
        .split_whitespace()
        .collect()
}

#[cfg(test)]
mod tests;
