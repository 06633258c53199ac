//! OpenAI Responses. Nothing is stored on the server: reasoning is exchanged in encrypted form.

mod decode;
mod encode;

pub(crate) use decode::ResponsesDecoder;
pub(crate) use encode::ResponsesWire;
