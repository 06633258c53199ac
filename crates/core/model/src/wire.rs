//! The four wire protocols: neutral requests out, neutral replies in.
//!
//! [`Encoder`] lays a request out as bytes; what differs between the APIs is behind [`Wire`].
//! [`Decode`] reads what comes back, event by event or as one body. Each API is one folder with its
//! own wire types; none knows the others.

pub(crate) mod anthropic;
pub(crate) mod assembly;
mod encoder;
mod fold;
mod fragments;
pub(crate) mod gemini;
pub(crate) mod json;
pub(crate) mod names;
mod openai;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;

#[cfg(test)]
mod tests;

use haft_types::{Api, Message, ModelSpec, Request, Role, ToolCall, ToolSpec};
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value};

pub(crate) use assembly::{CallIds, DecodedReply};
pub(crate) use encoder::Encoder;
pub(crate) use fragments::{CacheMark, Fragment, WireTurn};

use crate::reply::Delta;

/// What a model that takes no pictures is shown in their place.
pub(crate) const IMAGE_OMITTED: &str = "[picture left out: this model takes no pictures]";

/// What an encoder must know of the model and its provider. It does not change during the life of a
/// client.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The model.
    pub spec: ModelSpec,
    /// `provider/model`: thinking goes back only to its maker.
    pub full_name: String,
    /// Fields for every body.
    pub extra: Map<String, Value>,
    /// Whether replies are streamed.
    pub stream: bool,
    /// Whether this is OpenAI itself and not one of the servers that speak its protocol: those
    /// refuse fields they don't know.
    pub is_openai: bool,
    /// Whether `react` shows the model its own turns as its own.
    pub own_turns: bool,
}

impl Settings {
    /// Whether this model made the message, so that signatures in it mean something to its
    /// provider.
    fn made(&self, message: &Message) -> bool {
        message
            .llm_metadata
            .as_ref()
            .is_some_and(|made| made.model_name == self.full_name)
    }

    /// The arguments of a call as a text. Servers that give them to a template read them as JSON,
    /// and refuse what is none.
    fn arguments<'a>(&self, call: &'a ToolCall) -> &'a str {
        if self.is_openai {
            &call.arguments
        } else {
            json::object(&call.arguments).get()
        }
    }
}

/// The text of a summary, or of a system message in the middle, for APIs that take neither there:
/// as text of the user, in a tag that says what they are.
fn wrapped_text(message: &Message) -> Option<String> {
    let text = message.joined_text();
    match message.role {
        _ if text.trim().is_empty() => None,
        Role::Summary => Some(format!("<archived_summary>\n{text}\n</archived_summary>")),
        Role::System => Some(format!("<system-reminder>\n{text}\n</system-reminder>")),
        Role::User | Role::Assistant | Role::Tool => None,
    }
}

/// Reads the JSON of an event or a body.
fn parse<'a, T: Deserialize<'a>>(what: &str, json: &'a str) -> Result<T, Fault> {
    serde_json::from_str(json).map_err(|error| Fault::Bad(format!("{what}: {error}")))
}

/// A field the protocol promises.
fn required<T>(value: Option<T>, field: &str) -> Result<T, Fault> {
    value.ok_or_else(|| Fault::Bad(format!("`{field}` is missing")))
}

/// What differs between the APIs on the way out.
///
/// A body is `front`, tools, system, then the list of messages: everything stable first, so that a
/// request that only appends messages only appends bytes.
pub(crate) trait Wire: Send + Sync {
    /// The opening brace and every field before the tools, without a comma after the last.
    fn front(&self, request: &Request) -> Vec<u8>;

    /// What the field `tools` holds, of which there is at least one. `mark` asks for a cache marker
    /// on the last one.
    fn tools(&self, tools: &[ToolSpec], mark: CacheMark) -> Value;

    /// How the system text is framed, or `None` where it is the first message of the list.
    fn system_frame(&self) -> Option<WireFrame> {
        None
    }

    /// One system message, to be put into the frame.
    fn system(&self, _message: &Message, _mark: CacheMark) -> Vec<u8> {
        Vec::new()
    }

    /// The key and bracket that open the list of messages.
    fn list(&self) -> &'static str;

    /// One message.
    fn message(&self, message: &Message, mark: CacheMark) -> Fragment;

    /// How the fragments of one turn are wrapped, where the API demands alternating turns.
    fn turn(&self, _turn: WireTurn) -> Option<WireFrame> {
        None
    }
}

/// What stands before, between and after a list of pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireFrame {
    pub open: &'static str,
    pub between: &'static str,
    pub close: &'static str,
}

/// The wire form of an API.
pub(crate) fn wire(settings: Settings) -> Box<dyn Wire> {
    match settings.spec.api {
        Api::OpenaiChat => Box::new(openai_chat::ChatWire(settings)),
        Api::OpenaiResponses => Box::new(openai_responses::ResponsesWire(settings)),
        Api::Anthropic => Box::new(anthropic::AnthropicWire(settings)),
        Api::Gemini => Box::new(gemini::GeminiWire(settings)),
    }
}

/// Takes the deltas of a reply.
pub(crate) type Sink<'a> = &'a mut (dyn FnMut(Delta) + Send);

/// How far a reply has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyProgress {
    /// The message goes on.
    Going,
    /// The message is whole; its usage may still follow.
    Ended,
    /// Nothing more is to come.
    Done,
}

/// Why a reply cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It breaks the protocol.
    Bad(String),
    /// The provider says that it failed, as its error body says.
    Reported(Value),
}

/// Reads one reply. Nothing is repaired: what breaks the protocol is a [`Fault`].
pub(crate) trait Decode: Send {
    /// Takes the data of one event of a stream.
    fn event(&mut self, data: &str, sink: Sink<'_>) -> Result<ReplyProgress, Fault>;

    /// Takes a whole body that was not streamed; afterwards the reply is done.
    fn body(&mut self, body: &str, sink: Sink<'_>) -> Result<(), Fault>;

    /// The reply. Only asked for once the message has ended.
    fn finish(self: Box<Self>) -> DecodedReply;
}

/// A decoder for one reply; `ids` names calls that come without a name of their own.
pub(crate) fn decoder(api: Api, ids: CallIds) -> Box<dyn Decode> {
    match api {
        Api::OpenaiChat => Box::new(openai_chat::ChatDecoder::new(ids)),
        Api::OpenaiResponses => Box::new(openai_responses::ResponsesDecoder::new(ids)),
        Api::Anthropic => Box::new(anthropic::AnthropicDecoder::default()),
        Api::Gemini => Box::new(gemini::GeminiDecoder::new(ids)),
    }
}

/// Where requests go.
pub(crate) fn endpoint(base: &Url, spec: &ModelSpec, stream: bool) -> Url {
    match spec.api {
        Api::OpenaiChat => join(base, &[], &["chat", "completions"]),
        Api::OpenaiResponses => join(base, &[], &["responses"]),
        Api::Anthropic => join(base, &["v1"], &["messages"]),
        Api::Gemini => {
            let verb = if stream {
                "streamGenerateContent"
            } else {
                "generateContent"
            };
            // `tunedModels/x` and `models/x` are whole resource names; anything else is a model.
            let name = match spec.name.split_once('/') {
                Some(("models" | "tunedModels", _)) => spec.name.clone(),
                _ => format!("models/{}", spec.name),
            };
            let path = format!("{name}:{verb}");
            let mut url = join(
                base,
                &["v1beta", "v1", "v1alpha"],
                &path.split('/').collect::<Vec<_>>(),
            );
            if stream {
                url.query_pairs_mut().append_pair("alt", "sse");
            }
            url
        }
    }
}

/// Where the list of models is.
pub(crate) fn models_endpoint(base: &Url, api: Api) -> Url {
    match api {
        Api::OpenaiChat | Api::OpenaiResponses => join(base, &[], &["models"]),
        Api::Anthropic => join(base, &["v1"], &["models"]),
        Api::Gemini => join(base, &["v1beta", "v1", "v1alpha"], &["models"]),
    }
}

/// Appends to the path of a base URL, whose query is kept (some gateways put an API version there).
/// The first of `versions` is put in when the base ends in none of them.
fn join(base: &Url, versions: &[&str], path: &[&str]) -> Url {
    let mut url = base.clone();
    let last = base
        .path_segments()
        .and_then(|segments| segments.rev().find(|segment| !segment.is_empty()));
    let has_version = last.is_some_and(|last| versions.contains(&last));
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty();
        if let (false, Some(version)) = (has_version, versions.first()) {
            segments.push(version);
        }
        segments.extend(path);
    }
    url
}
