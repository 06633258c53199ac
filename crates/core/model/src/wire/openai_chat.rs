//! OpenAI Chat Completions, and the many servers that speak it.

mod decode;
mod encode;

pub(crate) use decode::ChatDecoder;
pub(crate) use encode::ChatWire;
