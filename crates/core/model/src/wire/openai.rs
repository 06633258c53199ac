//! What OpenAI's two APIs have in common beside the names of their fields: who said a message,
//! pictures, cache breakpoints, and how tokens are counted.

use haft_types::{CacheKind, Image, Message, Part, Role, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CacheMark, Fragment, Settings, json};

/// How an API of OpenAI lays messages out, by who said them.
pub(super) trait OpenaiMessages {
    /// Text and pictures that are not the model's own.
    fn input(&self, role: &'static str, message: &Message, mark: CacheMark) -> Fragment;

    /// A reply of the model.
    fn reply(&self, message: &Message) -> Fragment;

    /// Results of tools.
    fn results(&self, message: &Message, mark: CacheMark) -> Fragment;

    /// A message of any role. Both APIs take system messages in the middle.
    fn laid_out(&self, message: &Message, mark: CacheMark) -> Fragment {
        match message.role {
            Role::System | Role::Summary => self.input("system", message, mark),
            Role::User => self.input("user", message, mark),
            Role::Assistant => self.reply(message),
            Role::Tool => self.results(message, mark),
        }
    }
}

/// The texts and pictures of a message; empty texts are refused, and so are left out.
pub(super) fn pieces<'a, P>(
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

/// The address of a picture; none for a model that takes no pictures.
pub(super) fn image_url(settings: &Settings, image: &Image) -> Option<String> {
    settings
        .spec
        .capabilities
        .images
        .then(|| format!("data:{};base64,{}", image.media_type, image.data))
}

/// What ends the cached prefix, for models that have it marked.
pub(super) fn breakpoint(settings: &Settings, mark: CacheMark) -> Option<Value> {
    let marked =
        mark == CacheMark::Boundary && settings.spec.cache.rule == CacheKind::OpenaiBreakpoints;
    marked.then(|| json!({"mode": "explicit"}))
}

/// What of the input was in the cache.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct InputTokenDetails {
    #[serde(deserialize_with = "json::count")]
    pub(super) cached_tokens: Option<u64>,
    #[serde(
        alias = "cache_creation_input_tokens",
        deserialize_with = "json::count"
    )]
    pub(super) cache_write_tokens: Option<u64>,
}

/// What of the output was reasoning.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputTokenDetails {
    #[serde(deserialize_with = "json::count")]
    pub(super) reasoning_tokens: Option<u64>,
}

/// The neutral count. The input is counted whole; what was read from the cache and written to it is
/// part of it.
pub(super) fn usage(
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
