//! OpenAI Responses. Nothing is kept on the server: reasoning comes and goes encrypted.

mod decode;
mod encode;

pub(crate) use decode::ResponsesDecoder;
pub(crate) use encode::ResponsesWire;
