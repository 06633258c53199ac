//! The common parts of OpenAI's two APIs, apart from field names: roles, images, cache breakpoints,
//! and token counts.

use haft_types::{CacheKind, Image, Message, Part, Role, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CacheMark, Fragment, Settings, json};

/// Encodes messages for one of OpenAI's APIs, with one method each for input, replies, and tool
/// results.
pub(super) trait OpenaiMessages {
    /// Encodes text and images that the model did not write.
    fn encode_input(&self, role: &'static str, message: &Message, mark: CacheMark) -> Fragment;

    /// Encodes a reply of the model.
    fn encode_reply(&self, message: &Message) -> Fragment;

    /// Encodes tool results.
    fn encode_results(&self, message: &Message, mark: CacheMark) -> Fragment;

    /// Encodes a message with the method for its role. Both APIs accept system messages anywhere in
    /// the list.
    fn encode_by_role(&self, message: &Message, mark: CacheMark) -> Fragment {
        match message.role {
            Role::System | Role::Summary => self.encode_input("system", message, mark),
            Role::User => self.encode_input("user", message, mark),
            Role::Assistant => self.encode_reply(message),
            Role::Tool => self.encode_results(message, mark),
        }
    }
}

/// Converts the texts and images of a message. Empty texts are left out because the server rejects
/// them.
pub(super) fn content_pieces<'a, P>(
    message: &'a Message,
    text_piece: impl Fn(&'a str) -> P,
    image_piece: impl Fn(&'a Image) -> P,
) -> Vec<P> {
    let piece = |part: &'a Part| match part {
        Part::Text { text, .. } if text.trim().is_empty() => None,
        Part::Text { text, .. } => Some(text_piece(text)),
        Part::Image(image) => Some(image_piece(image)),
        Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    };
    message.content.iter().filter_map(piece).collect()
}

/// Returns an image as a data URL, or `None` if the model takes no images.
pub(super) fn image_data_url(settings: &Settings, image: &Image) -> Option<String> {
    settings
        .spec
        .capabilities
        .images
        .then(|| format!("data:{};base64,{}", image.media_type, image.data))
}

/// Returns the field that marks the end of the cached prefix, or `None` if the model has no
/// explicit breakpoints or `mark` is not a boundary.
pub(super) fn cache_breakpoint(settings: &Settings, mark: CacheMark) -> Option<Value> {
    let marked =
        mark == CacheMark::Boundary && settings.spec.cache.rule == CacheKind::OpenaiBreakpoints;
    marked.then(|| json!({"mode": "explicit"}))
}

/// The numbers of input tokens that were read from the cache or written to it.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct InputTokenDetails {
    #[serde(deserialize_with = "json::deserialize_count")]
    pub(super) cached_tokens: Option<u64>,
    #[serde(
        alias = "cache_creation_input_tokens",
        deserialize_with = "json::deserialize_count"
    )]
    pub(super) cache_write_tokens: Option<u64>,
}

/// The number of output tokens that were used for reasoning.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputTokenDetails {
    #[serde(deserialize_with = "json::deserialize_count")]
    pub(super) reasoning_tokens: Option<u64>,
}

/// Converts token counts to the form that all APIs share. The server's `input` includes the tokens
/// read from the cache and written to it; the input count of the shared form excludes both.
pub(super) fn to_neutral_usage(
    input: Option<u64>,
    details: InputTokenDetails,
    output: Option<u64>,
    written: Option<OutputTokenDetails>,
) -> Usage {
    let cached_input = details.cached_tokens.unwrap_or(0);
    let cache_write = details.cache_write_tokens.unwrap_or(0);
    Usage {
        input: input
            .unwrap_or(0)
            .saturating_sub(cached_input + cache_write),
        cached_input,
        cache_write,
        output: output.unwrap_or(0),
        reasoning: written
            .and_then(|details| details.reasoning_tokens)
            .unwrap_or(0),
    }
}
