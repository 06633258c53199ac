//! The four wire protocols: encoders for requests and decoders for replies.
//!
//! [`Encoder`] lays a request out as bytes; the differences between the APIs are behind [`Wire`].
//! [`Decode`] reads the reply, event by event or as one body. Each API has a folder with its own
//! wire types and does not use the others.

pub(crate) mod anthropic;
pub(crate) mod assembly;
mod encoder;
mod fold;
mod fragments;
#[cfg(any(test, fuzzing))]
mod fuzz_check;
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

pub(crate) use assembly::{CallIds, DecodedReply, Notation};
pub(crate) use encoder::Encoder;
pub(crate) use fragments::{CacheMark, Fragment, WireTurn};
#[cfg(any(test, fuzzing))]
pub use fuzz_check::check_event_stream;

use crate::reply::Delta;

/// The text sent in place of an image to a model that accepts no images.
pub(crate) const IMAGE_OMITTED: &str = "[picture left out: this model takes no pictures]";

/// The properties of a model and its provider that an encoder needs. They don't change during the
/// life of a client.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub spec: ModelSpec,
    /// The full name, `provider/model`. Thinking is sent back only to the model that wrote it.
    pub full_name: String,
    /// Fields added to every request body.
    pub extra: Map<String, Value>,
    /// Fields that are left out of every request body, because the provider rejected them.
    pub omitted: Vec<String>,
    /// True if replies are streamed.
    pub stream: bool,
    /// True if the server is OpenAI itself. Other servers with OpenAI's protocol reject fields they
    /// don't know.
    pub is_openai: bool,
    /// True if the protocol is `react`, and the model's own turns are sent under the assistant
    /// role.
    pub own_turns: bool,
}

impl Settings {
    /// True if haft adds the field `key` to bodies: the provider accepts it, and the configuration
    /// does not set it.
    fn adds_field(&self, key: &str) -> bool {
        !self.extra.contains_key(key) && !self.omitted.iter().any(|omitted| omitted == key)
    }

    /// True if this model wrote the message, so that the provider accepts the signatures in the
    /// message.
    fn is_author_of(&self, message: &Message) -> bool {
        message
            .llm_metadata
            .as_ref()
            .is_some_and(|made| made.model_name == self.full_name)
    }

    /// Returns the arguments of a call as text. Servers other than OpenAI may parse the arguments
    /// as JSON for a template and reject the request if that fails, so invalid arguments are
    /// replaced with `{}` for such servers.
    fn call_arguments<'a>(&self, call: &'a ToolCall) -> &'a str {
        if self.is_openai {
            &call.arguments
        } else {
            json::object_or_empty(&call.arguments).get()
        }
    }
}

/// Wraps the text of a summary or system message in a tag that names the kind of message, for APIs
/// that accept such messages only as user text. Returns `None` for other roles and for empty text.
fn wrap_as_user_text(message: &Message) -> Option<String> {
    let text = message.joined_text();
    match message.role {
        _ if text.trim().is_empty() => None,
        Role::Summary => Some(format!("<archived_summary>\n{text}\n</archived_summary>")),
        Role::System => Some(format!("<system-reminder>\n{text}\n</system-reminder>")),
        Role::User | Role::Assistant | Role::Tool => None,
    }
}

/// Parses the JSON of an event or a body. `what` names the event or body in the error.
fn parse_json<'a, T: Deserialize<'a>>(what: &str, json: &'a str) -> Result<T, Fault> {
    serde_json::from_str(json).map_err(|error| Fault::Bad(format!("{what}: {error}")))
}

/// Returns the value of a field that the protocol requires, or a fault that names the missing
/// field.
fn require_field<T>(value: Option<T>, field: &str) -> Result<T, Fault> {
    value.ok_or_else(|| Fault::Bad(format!("`{field}` is missing")))
}

/// The API-specific part of encoding a request.
///
/// A body consists of the front, the tools, the system text, then the list of messages. The stable
/// parts come first, so that appending messages to a request only appends bytes to its body.
pub(crate) trait Wire: Send + Sync {
    /// Returns the opening brace and every field before the tools, without a trailing comma.
    fn encode_front(&self, request: &Request) -> Vec<u8>;

    /// Returns the value of the field `tools`; `tools` is not empty. With [`CacheMark::Boundary`],
    /// the last tool gets a cache marker.
    fn encode_tools(&self, tools: &[ToolSpec], mark: CacheMark) -> Value;

    /// Returns the text around the system messages, or `None` if the system text is the first
    /// message of the list.
    fn system_frame(&self) -> Option<WireFrame> {
        None
    }

    /// Encodes one system message, to be placed inside [`Self::system_frame`].
    fn encode_system(&self, _message: &Message, _mark: CacheMark) -> Vec<u8> {
        Vec::new()
    }

    /// Returns the key and the bracket that open the list of messages.
    fn list_opening(&self) -> &'static str;

    fn encode_message(&self, message: &Message, mark: CacheMark) -> Fragment;

    /// Returns the text around the fragments of one turn, or `None` if the API does not require
    /// alternating turns.
    fn turn_frame(&self, _turn: WireTurn) -> Option<WireFrame> {
        None
    }
}

/// The text before, between and after the pieces of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireFrame {
    pub open: &'static str,
    pub between: &'static str,
    pub close: &'static str,
}

/// Creates the encoder for the API of the model.
pub(crate) fn create_wire(settings: Settings) -> Box<dyn Wire> {
    match settings.spec.api {
        Api::OpenaiChat => Box::new(openai_chat::ChatWire(settings)),
        Api::OpenaiResponses => Box::new(openai_responses::ResponsesWire(settings)),
        Api::Anthropic => Box::new(anthropic::AnthropicWire(settings)),
        Api::Gemini => Box::new(gemini::GeminiWire(settings)),
    }
}

/// Receives the deltas of a reply.
pub(crate) type Sink<'a> = &'a mut (dyn FnMut(Delta) + Send);

/// The state of a reply after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyProgress {
    /// The message continues.
    Going,
    /// The message is complete; its usage may still follow.
    Ended,
    /// The reply is over: no further event is expected.
    Done,
}

/// The reason why a reply cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The reply violates the protocol.
    Bad(String),
    /// The provider reported an error, with this JSON body.
    Reported(Value),
}

/// Reads one reply. Nothing is repaired: any violation of the protocol is a [`Fault`].
pub(crate) trait Decode: Send {
    /// Reads the data of one stream event.
    fn read_event(&mut self, data: &str, sink: Sink<'_>) -> Result<ReplyProgress, Fault>;

    /// Reads a whole body that was not streamed; the reply is then complete.
    fn read_body(&mut self, body: &str, sink: Sink<'_>) -> Result<(), Fault>;

    /// Returns the decoded reply. Call it only after the message has ended.
    fn finish(self: Box<Self>) -> DecodedReply;
}

/// Creates a decoder for one reply. `ids` provides ids for calls that arrive without one.
pub(crate) fn create_decoder(api: Api, ids: CallIds) -> Box<dyn Decode> {
    match api {
        Api::OpenaiChat => Box::new(openai_chat::ChatDecoder::new(ids)),
        Api::OpenaiResponses => Box::new(openai_responses::ResponsesDecoder::new(ids)),
        Api::Anthropic => Box::new(anthropic::AnthropicDecoder::default()),
        Api::Gemini => Box::new(gemini::GeminiDecoder::new(ids)),
    }
}

/// Returns the URL to which requests are posted.
pub(crate) fn request_endpoint(base: &Url, spec: &ModelSpec, stream: bool) -> Url {
    match spec.api {
        Api::OpenaiChat => append_path(base, &[], &["chat", "completions"]),
        Api::OpenaiResponses => append_path(base, &[], &["responses"]),
        Api::Anthropic => append_path(base, &["v1"], &["messages"]),
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
            let mut url = append_path(
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

/// Returns the URL of the provider's list of models.
pub(crate) fn models_endpoint(base: &Url, api: Api) -> Url {
    match api {
        Api::OpenaiChat | Api::OpenaiResponses => append_path(base, &[], &["models"]),
        Api::Anthropic => append_path(base, &["v1"], &["models"]),
        Api::Gemini => append_path(base, &["v1beta", "v1", "v1alpha"], &["models"]),
    }
}

/// Appends `path` to the path of a base URL, and keeps the URL's query, because some gateways
/// expect an API version there. Before `path`, inserts the first of `versions`, unless the base URL
/// already ends in one of `versions`.
fn append_path(base: &Url, versions: &[&str], path: &[&str]) -> Url {
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
