//! OpenAI Chat Completions, and the many servers that speak it.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::Chat;
