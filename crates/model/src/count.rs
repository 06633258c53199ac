//! Token counts with a real tokenizer (SPEC 9.9).

use haft_types::TokenCounter;

/// Counts with OpenAI's `o200k_base` vocabulary; other models' counts differ by a factor that their usage reveals.
///
/// The vocabulary is unpacked at the first count and shared by the whole process. [`O200k::warm`] does that on a thread of
/// its own, so that start-up does not wait for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct O200k;

impl O200k {
    /// Unpacks the vocabulary now, in the background.
    pub fn warm() {
        // A thread that cannot be started costs nothing but the head start.
        let _ = std::thread::Builder::new().name("tokenizer".into()).spawn(|| O200k.text(""));
    }
}

impl TokenCounter for O200k {
    fn text(&self, text: &str) -> u32 {
        match tiktoken::get_encoding("o200k_base") {
            Some(encoding) => u32::try_from(encoding.count(text)).unwrap_or(u32::MAX),
            // The vocabulary is compiled in; were it not, an estimate on the safe side is the best answer.
            None => u32::try_from(text.len() / 3).unwrap_or(u32::MAX),
        }
    }
}
