//! Parses a request body into its elements, calls and results, each with its position in the body.
//!
//! An element is one tool, one block of the system text or one message; a result is the answer of a
//! tool, wherever the API puts it. Nothing is copied: rewriting replaces spans of the body, so that
//! everything else is sent as it was received.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use haft_types::{Api, ContentHash, Hasher};
use serde_json::value::RawValue;

use crate::layout::SegmentKind;

/// The number of bytes in a token, for the estimates on which decisions are based. A real tokenizer
/// would take longer than the whole rewriting.
const BYTES_PER_TOKEN: u64 = 4;
/// The estimated tokens of an element with an image, whose encoded bytes say nothing about tokens.
const IMAGE_TOKENS: u64 = 1_600;
/// The size in bytes from which an element with encoded data is counted as an image.
const MIN_IMAGE_BYTES: usize = 8_000;

/// The reason why a request is forwarded unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnchangedReason {
    /// The body is not a request to its API, is not text, or has an unknown encoding.
    Unreadable,
    /// The request continues a response that is stored at the provider.
    StoredResponse,
    /// The conversation is stored at the provider.
    StoredConversation,
    /// The request contains an item into which the provider has compacted earlier items.
    Compaction,
    /// The agent asks the provider to clear old results.
    ContextManagement,
    /// The request refers to content that is stored at the provider as a named cache.
    NamedCache,
    /// The user did not allow requests of this agent to be rewritten.
    NoConsent,
}

/// A JSON object whose values are not parsed.
pub(crate) type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// One tool, block of the system text or message.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) kind: SegmentKind,
    pub(crate) span: Range<usize>,
    pub(crate) tokens: u64,
    /// True if the model wrote the element.
    pub(crate) is_reply: bool,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(crate) struct CallSite<'a> {
    /// The hash of this call and of all calls before it. Equal keys stand for the same moment of the
    /// same conversation.
    pub(crate) key: ContentHash,
    pub(crate) name: String,
    arguments: &'a str,
}

impl CallSite<'_> {
    /// Returns the arguments as JSON. Some APIs send them as a string.
    pub(crate) fn decode_arguments(&self) -> Cow<'_, str> {
        match serde_json::from_str::<String>(self.arguments) {
            Ok(text) => Cow::Owned(text),
            Err(_) => Cow::Borrowed(self.arguments),
        }
    }
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(crate) struct ResultSite {
    /// The index of the result's call.
    pub(crate) call: usize,
    /// The index of the element that contains the result.
    pub(crate) element: usize,
    /// The position of the JSON value that is replaced when the result is cleared.
    pub(crate) span: Range<usize>,
    pub(crate) hash: ContentHash,
    pub(crate) tokens: u64,
    /// False if the result contains more than text.
    pub(crate) is_text: bool,
}

/// A request body with the positions of everything that can be rewritten.
#[derive(Clone, Debug)]
pub(crate) struct ParsedRequest<'a> {
    pub(crate) api: Api,
    pub(crate) body: &'a str,
    pub(crate) model: Option<String>,
    pub(crate) elements: Vec<Element>,
    pub(crate) calls: Vec<CallSite<'a>>,
    pub(crate) results: Vec<ResultSite>,
    /// The position of the cache marker that the body has outside of its elements.
    pub(crate) has_automatic_marker: bool,
}

impl<'a> ParsedRequest<'a> {
    /// Parses a request body. The error is the reason why the body must be forwarded unchanged.
    pub(crate) fn parse(api: Api, body: &'a str) -> Result<Self, UnchangedReason> {
        let fields: Fields<'a> = parse_json(body).ok_or(UnchangedReason::Unreadable)?;
        let is_set = |name: &str| fields.get(name).is_some_and(|value| value.get() != "null");
        for (name, reason) in [
            ("previous_response_id", UnchangedReason::StoredResponse),
            ("conversation", UnchangedReason::StoredConversation),
            ("context_management", UnchangedReason::ContextManagement),
            ("cachedContent", UnchangedReason::NamedCache),
            ("cached_content", UnchangedReason::NamedCache),
        ] {
            if is_set(name) {
                return Err(reason);
            }
        }
        let (messages, systems): (&str, &[&str]) = match api {
            Api::OpenaiChat => ("messages", &[]),
            Api::OpenaiResponses => ("input", &["instructions"]),
            Api::Anthropic => ("messages", &["system"]),
            Api::Gemini => ("contents", &["systemInstruction", "system_instruction"]),
        };
        let list = fields.get(messages).ok_or(UnchangedReason::Unreadable)?;
        let mut request = Self {
            api,
            body,
            model: fields
                .get("model")
                .and_then(|model| parse_json(model.get())),
            elements: Vec::new(),
            calls: Vec::new(),
            results: Vec::new(),
            has_automatic_marker: is_set("cache_control"),
        };
        let tools = fields.get("tools").and_then(|tools| parse_list(tools));
        for tool in tools.into_iter().flatten() {
            request.add_element(SegmentKind::Tool, tool, false);
        }
        for name in systems {
            let Some(value) = fields.get(*name) else {
                continue;
            };
            for block in parse_list(value).unwrap_or_else(|| vec![value]) {
                request.add_element(SegmentKind::System, block, false);
            }
        }
        let list = match parse_list(list) {
            Some(list) => list,
            None if list.get().starts_with('"') => vec![*list],
            None => return Err(UnchangedReason::Unreadable),
        };
        let mut open = OpenCalls::default();
        for message in list {
            request.add_message(message, &mut open)?;
        }
        Ok(request)
    }

    /// Returns the text of an element as it was sent.
    pub(crate) fn element_text(&self, index: usize) -> &'a str {
        &self.body[self.elements[index].span.clone()]
    }

    pub(crate) fn has_tools(&self) -> bool {
        self.elements
            .first()
            .is_some_and(|first| first.kind == SegmentKind::Tool)
    }

    /// Returns the number of elements in each request of the conversation, this one included. An
    /// earlier request ended where the model's reply to it begins.
    pub(crate) fn request_ends(&self) -> Vec<usize> {
        let starts = (1..self.elements.len())
            .filter(|index| self.elements[*index].is_reply && !self.elements[index - 1].is_reply);
        starts.chain([self.elements.len()]).collect()
    }

    /// Returns the decoded text of a result.
    pub(crate) fn result_text(&self, result: &ResultSite) -> String {
        let json = &self.body[result.span.clone()];
        match parse_json::<serde_json::Value>(json) {
            Some(value) => collect_text(&value),
            None => json.to_owned(),
        }
    }

    fn position(&self, text: &str) -> Range<usize> {
        let start = text.as_ptr() as usize - self.body.as_ptr() as usize;
        start..start + text.len()
    }

    fn add_element(&mut self, kind: SegmentKind, value: &RawValue, is_reply: bool) {
        let text = value.get();
        self.elements.push(Element {
            kind,
            span: self.position(text),
            tokens: estimate_tokens(text),
            is_reply,
        });
    }

    fn add_message(
        &mut self,
        message: &'a RawValue,
        open: &mut OpenCalls,
    ) -> Result<(), UnchangedReason> {
        let fields: Fields<'a> = parse_json(message.get()).unwrap_or_default();
        let role = text_field(&fields, "role");
        let kind = text_field(&fields, "type");
        let is_reply = match (role.as_deref(), kind.as_deref()) {
            (Some("assistant" | "model"), _) => true,
            (None, Some(kind)) => kind == "reasoning" || kind.ends_with("_call"),
            (Some(_), _) | (None, None) => false,
        };
        self.add_element(SegmentKind::Message, message, is_reply);
        match self.api {
            Api::OpenaiChat => self.add_chat_parts(&fields, role.as_deref(), open),
            Api::OpenaiResponses => self.add_item(&fields, kind.as_deref(), open)?,
            Api::Anthropic => self.add_content_blocks(&fields, open)?,
            Api::Gemini => self.add_gemini_parts(&fields, open),
        }
        Ok(())
    }

    fn add_chat_parts(&mut self, fields: &Fields<'a>, role: Option<&str>, open: &mut OpenCalls) {
        let calls = fields.get("tool_calls").and_then(|calls| parse_list(calls));
        for call in calls.into_iter().flatten() {
            let call: Fields<'a> = parse_json(call.get()).unwrap_or_default();
            let function: Fields<'a> = call
                .get("function")
                .and_then(|function| parse_json(function.get()))
                .unwrap_or_default();
            self.add_call(
                text_field(&call, "id"),
                &function,
                function.get("arguments").copied(),
                open,
            );
        }
        if role == Some("tool") {
            let call = open.take(text_field(fields, "tool_call_id").as_deref());
            self.add_result(call, fields.get("content").copied());
        }
    }

    fn add_item(
        &mut self,
        fields: &Fields<'a>,
        kind: Option<&str>,
        open: &mut OpenCalls,
    ) -> Result<(), UnchangedReason> {
        let arguments = match kind {
            Some(kind) if kind.contains("compaction") => return Err(UnchangedReason::Compaction),
            Some("item_reference") => return Err(UnchangedReason::StoredResponse),
            Some("function_call") => fields.get("arguments"),
            Some("custom_tool_call") => fields.get("input"),
            Some("local_shell_call") => fields.get("action"),
            Some(kind) if kind.ends_with("_output") => {
                let call = open.take(text_field(fields, "call_id").as_deref());
                self.add_result(call, fields.get("output").copied());
                return Ok(());
            }
            Some(_) | None => return Ok(()),
        };
        let id = text_field(fields, "call_id");
        self.add_call(id, fields, arguments.copied(), open);
        Ok(())
    }

    fn add_content_blocks(
        &mut self,
        fields: &Fields<'a>,
        open: &mut OpenCalls,
    ) -> Result<(), UnchangedReason> {
        let blocks = fields
            .get("content")
            .and_then(|content| parse_list(content));
        for block in blocks.into_iter().flatten() {
            let block: Fields<'a> = parse_json(block.get()).unwrap_or_default();
            match text_field(&block, "type").as_deref() {
                Some("compaction") => return Err(UnchangedReason::Compaction),
                Some("tool_use") => {
                    let id = text_field(&block, "id");
                    self.add_call(id, &block, block.get("input").copied(), open);
                }
                Some("tool_result") => {
                    let call = open.take(text_field(&block, "tool_use_id").as_deref());
                    self.add_result(call, block.get("content").copied());
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    fn add_gemini_parts(&mut self, fields: &Fields<'a>, open: &mut OpenCalls) {
        let parts = fields.get("parts").and_then(|parts| parse_list(parts));
        for part in parts.into_iter().flatten() {
            let part: Fields<'a> = parse_json(part.get()).unwrap_or_default();
            let inner = |name: &str| -> Option<Fields<'a>> { parse_json(part.get(name)?.get()) };
            if let Some(call) = inner("functionCall") {
                // Calls without an id are answered by name, in order.
                let id = text_field(&call, "id").or_else(|| text_field(&call, "name"));
                self.add_call(id, &call, call.get("args").copied(), open);
            } else if let Some(answer) = inner("functionResponse") {
                let id = text_field(&answer, "id").or_else(|| text_field(&answer, "name"));
                let call = open.take(id.as_deref());
                self.add_result(call, answer.get("response").copied());
            }
        }
    }

    fn add_call(
        &mut self,
        id: Option<String>,
        named: &Fields<'a>,
        arguments: Option<&'a RawValue>,
        open: &mut OpenCalls,
    ) {
        let name = text_field(named, "name").unwrap_or_default();
        let arguments = arguments.map_or("", RawValue::get);
        let id = id.unwrap_or_default();
        let mut hasher = Hasher::default();
        match self.calls.last() {
            Some(before) => hasher.update(&before.key.0),
            None => hasher.update(&[self.api as u8]),
        };
        let key = hasher
            .update(id.as_bytes())
            .update(name.as_bytes())
            .update(arguments.as_bytes())
            .finish();
        open.add(id, self.calls.len());
        self.calls.push(CallSite {
            key,
            name,
            arguments,
        });
    }

    fn add_result(&mut self, call: Option<usize>, content: Option<&'a RawValue>) {
        let Some((call, content)) = call.zip(content) else {
            return;
        };
        let text = content.get();
        let result = ResultSite {
            call,
            element: self.elements.len() - 1,
            span: self.position(text),
            hash: ContentHash::from_content(cut_markers(text).as_bytes()),
            tokens: estimate_tokens(text),
            is_text: is_only_text(content),
        };
        self.results.push(result);
    }
}

/// The calls whose results have not been found yet, by id.
#[derive(Default)]
struct OpenCalls(HashMap<String, Vec<usize>>);

impl OpenCalls {
    fn add(&mut self, id: String, call: usize) {
        self.0.entry(id).or_default().push(call);
    }

    /// Removes and returns the oldest open call with this id.
    fn take(&mut self, id: Option<&str>) -> Option<usize> {
        let calls = self.0.get_mut(id?)?;
        (!calls.is_empty()).then(|| calls.remove(0))
    }
}

pub(crate) fn parse_json<'a, T: serde::Deserialize<'a>>(json: &'a str) -> Option<T> {
    serde_json::from_str(json).ok()
}

pub(crate) fn parse_list(value: &RawValue) -> Option<Vec<&RawValue>> {
    parse_json(value.get())
}

fn text_field(fields: &Fields<'_>, name: &str) -> Option<String> {
    parse_json(fields.get(name)?.get())
}

/// Returns the estimated number of tokens in a piece of a body.
pub(crate) fn estimate_tokens(text: &str) -> u64 {
    if text.len() >= MIN_IMAGE_BYTES && (text.contains("base64") || text.contains("inlineData")) {
        return IMAGE_TOKENS;
    }
    (text.len() as u64).div_ceil(BYTES_PER_TOKEN)
}

/// Returns the text of a result without cache markers, which move while the text stays unchanged.
fn cut_markers(text: &str) -> Cow<'_, str> {
    if text.contains("\"cache_control\"") {
        Cow::Owned(crate::layout::cut_cache_markers(text).0)
    } else {
        Cow::Borrowed(text)
    }
}

/// True if a result is a string, a list of text blocks, or an object without images.
fn is_only_text(content: &RawValue) -> bool {
    let json = content.get();
    if json.starts_with('"') {
        return true;
    }
    match parse_list(content) {
        Some(blocks) => blocks.into_iter().all(|block| {
            let fields: Fields<'_> = parse_json(block.get()).unwrap_or_default();
            let kind = text_field(&fields, "type");
            matches!(kind.as_deref(), Some("text" | "input_text" | "output_text"))
        }),
        None => json.starts_with('{') && !json.contains("inlineData"),
    }
}

/// Joins the texts of a result: the whole string, the texts of a list of blocks, or the strings of
/// an object.
fn collect_text(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let texts: Vec<_> = list.iter().map(collect_text).collect();
            texts.join("\n")
        }
        Value::Object(fields) => match fields.get("text") {
            Some(Value::String(text)) => text.clone(),
            Some(_) | None => match fields.values().next() {
                Some(Value::String(text)) if fields.len() == 1 => text.clone(),
                Some(_) | None => value.to_string(),
            },
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
