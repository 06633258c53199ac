//! Anthropic Messages.

mod decode;
mod encode;

pub(crate) use decode::AnthropicDecoder;
pub(crate) use encode::AnthropicWire;

/// The value of the `anthropic-version` header, which selects the version of the API.
pub(crate) const API_VERSION: &str = "2023-06-01";
