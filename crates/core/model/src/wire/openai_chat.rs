//! OpenAI Chat Completions, which many other servers implement too.

mod decode;
mod encode;

pub(crate) use decode::ChatDecoder;
pub(crate) use encode::ChatWire;
