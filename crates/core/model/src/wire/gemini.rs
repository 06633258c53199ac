//! Gemini generateContent.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::Gemini;
