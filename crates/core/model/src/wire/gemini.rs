//! Gemini generateContent.

mod decode;
mod encode;

pub(crate) use decode::GeminiDecoder;
pub(crate) use encode::GeminiWire;
