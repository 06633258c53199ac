//! Requests. Every message is an entry of its own; a tool message takes text only, so pictures of results follow the block
//! in a user message.

use std::borrow::Cow;

use haft_types::{CacheKind, Message, Part, Request, Role, ToolSpec};
use serde::Serialize;
use serde_json::{Value, json};

use crate::wire::json::{self, field};
use crate::wire::names::{short_id, tool_name};
use crate::wire::{Fragment, Frame, IMAGE_OMITTED, Mark, Settings, Turn, Wire};

/// The longest id of a call OpenAI takes.
const LONGEST_ID: usize = 40;

pub(crate) struct Chat(pub(crate) Settings);

#[derive(Serialize)]
struct Wrapped<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

impl<'a> Wrapped<'a> {
    fn new(role: &'static str, content: Option<Content<'a>>) -> Self {
        Self { role, tool_call_id: None, content, reasoning_content: None, tool_calls: Vec::new() }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Pieces(Vec<Piece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Value>,
    },
    ImageUrl {
        image_url: Url,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Value>,
    },
}

#[derive(Serialize)]
struct Url {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

impl Wire for Chat {
    fn front(&self, request: &Request) -> Vec<u8> {
        let Settings { spec, extra, stream, is_openai, .. } = &self.0;
        let mut out = b"{\"model\":".to_vec();
        json::write(&mut out, &spec.name);
        // OpenAI deprecated `max_tokens` and its reasoning models refuse it; most other servers know nothing else.
        let limit_key = if spec.capabilities.reasoning || *is_openai { "max_completion_tokens" } else { "max_tokens" };
        let set_by_user = ["max_tokens", "max_completion_tokens"].iter().any(|key| extra.contains_key(*key));
        if let (Some(limit), false) = (request.max_output_tokens.or(spec.max_output_tokens), set_by_user) {
            field(&mut out, limit_key, &limit);
        }
        if *stream {
            field(&mut out, "stream", &true);
            if !extra.contains_key("stream_options") {
                field(&mut out, "stream_options", &json!({"include_usage": true}));
            }
        }
        // A routing hint that only OpenAI's caches use; many compatible servers refuse fields they don't know.
        let keyed = *is_openai || spec.cache.rule == CacheKind::OpenaiBreakpoints;
        if let (Some(key), true) = (&request.cache_key, keyed && !extra.contains_key("prompt_cache_key")) {
            field(&mut out, "prompt_cache_key", key);
        }
        for (key, value) in extra {
            field(&mut out, key, value);
        }
        out
    }

    fn tools(&self, tools: &[ToolSpec], _: Mark) -> Vec<u8> {
        if tools.is_empty() {
            return Vec::new();
        }
        let list: Vec<_> = tools
            .iter()
            .map(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name, "description": tool.description, "parameters": tool.parameters,
                }})
            })
            .collect();
        let mut out = b"\"tools\":".to_vec();
        json::write(&mut out, &list);
        out
    }

    fn system_frame(&self) -> Option<Frame> {
        None
    }

    fn system(&self, _: &Message, _: Mark) -> Vec<u8> {
        Vec::new()
    }

    fn list(&self) -> &'static str {
        "\"messages\":["
    }

    fn turn(&self, _: Turn) -> Option<Frame> {
        None
    }

    fn message(&self, message: &Message, mark: Mark) -> Fragment {
        match message.role {
            Role::System | Role::Summary => self.words("system", message, mark),
            Role::User => self.words("user", message, mark),
            Role::Assistant => self.assistant(message),
            Role::Tool => self.results(message, mark),
        }
    }
}

impl Chat {
    fn words(&self, role: &'static str, message: &Message, mark: Mark) -> Fragment {
        let mut pieces = Vec::new();
        for part in &message.content {
            match part {
                Part::Text { text, .. } if text.trim().is_empty() => {}
                Part::Text { text, .. } => pieces.push(text_piece(text)),
                Part::Image(image) => pieces.push(self.picture(&image.media_type, &image.data)),
                Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => {}
            }
        }
        let mut fragment = Fragment::new(Turn::User);
        if !pieces.is_empty() {
            json::push(&mut fragment.items, &Wrapped::new(role, Some(self.content(pieces, mark))));
        }
        fragment
    }

    fn results(&self, message: &Message, mark: Mark) -> Fragment {
        let mut fragment = Fragment::new(Turn::User);
        let mut pictures = Vec::new();
        let last = message.tool_results().count().saturating_sub(1);
        for (index, result) in message.tool_results().enumerate() {
            let mark = if index == last { mark } else { Mark::None };
            let content = self.content(vec![text_piece(&result.envelope.text)], mark);
            let tool =
                Wrapped { tool_call_id: Some(self.id(&result.tool_call_id)), ..Wrapped::new("tool", Some(content)) };
            json::push(&mut fragment.results, &tool);
        }
        for part in &message.content {
            match part {
                Part::Image(image) => pictures.push(self.picture(&image.media_type, &image.data)),
                Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => {}
            }
        }
        if !pictures.is_empty() {
            let user = Wrapped::new("user", Some(Content::Pieces(pictures)));
            json::push(&mut fragment.after_results, &user);
        }
        fragment
    }

    fn picture(&self, media_type: &str, data: &str) -> Piece<'static> {
        if !self.0.spec.capabilities.images {
            return text_piece(IMAGE_OMITTED);
        }
        let url = Url { url: format!("data:{media_type};base64,{data}") };
        Piece::ImageUrl { image_url: url, prompt_cache_breakpoint: None }
    }

    /// A single text goes as a plain string, the form every server takes, unless it must carry a breakpoint.
    fn content<'a>(&self, mut pieces: Vec<Piece<'a>>, mark: Mark) -> Content<'a> {
        let marked = mark == Mark::Boundary && self.0.spec.cache.rule == CacheKind::OpenaiBreakpoints;
        if let (true, Some(last)) = (marked, pieces.last_mut()) {
            let (Piece::Text { prompt_cache_breakpoint, .. } | Piece::ImageUrl { prompt_cache_breakpoint, .. }) = last;
            *prompt_cache_breakpoint = Some(json!({"mode": "explicit"}));
        }
        match pieces.as_slice() {
            [Piece::Text { text, prompt_cache_breakpoint: None }] => Content::Text(text),
            _ => Content::Pieces(pieces),
        }
    }

    /// The protocol itself has no place for thinking. Models that want it back get it with every reply that called tools, an
    /// empty one where there was none: they refuse a history in which one is missing.
    fn assistant(&self, message: &Message) -> Fragment {
        let mut texts = Vec::new();
        let mut reasoning = String::new();
        for part in &message.content {
            match part {
                Part::Text { text, .. } if text.trim().is_empty() => {}
                Part::Text { text, .. } => texts.push(text_piece(text)),
                Part::Thinking(thinking) if self.0.made(message) => reasoning.push_str(&thinking.text),
                Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => {}
            }
        }
        let content = match texts.as_slice() {
            [] => None,
            [Piece::Text { text, .. }] => Some(Content::Text(text)),
            _ => Some(Content::Pieces(texts)),
        };
        let tool_calls: Vec<_> = message
            .tool_calls()
            .map(|call| Call {
                id: self.id(&call.id),
                r#type: "function",
                function: Function { name: tool_name(&call.name), arguments: &call.arguments },
            })
            .collect();
        let mut fragment = Fragment::new(Turn::Assistant);
        if content.is_some() || !tool_calls.is_empty() {
            let wants_it = self.0.spec.capabilities.reasoning_back && !tool_calls.is_empty();
            let reasoning_content = wants_it.then_some(reasoning);
            let reply = Wrapped { reasoning_content, tool_calls, ..Wrapped::new("assistant", content) };
            json::push(&mut fragment.items, &reply);
        }
        fragment
    }

    /// OpenAI itself limits the length; other servers issue ids of any shape and want them back as they are.
    fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        short_id(id, if self.0.is_openai { LONGEST_ID } else { usize::MAX })
    }
}

fn text_piece(text: &str) -> Piece<'_> {
    Piece::Text { text, prompt_cache_breakpoint: None }
}
