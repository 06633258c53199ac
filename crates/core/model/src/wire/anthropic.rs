//! Anthropic Messages.

mod decode;
mod encode;

pub(crate) use decode::AnthropicDecoder;
pub(crate) use encode::AnthropicWire;

/// The version of the API that these types describe.
pub(crate) const API_VERSION: &str = "2023-06-01";
