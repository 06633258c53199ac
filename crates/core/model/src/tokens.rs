//! Counts tokens of `o200k_base` exactly, without a load time.
//!
//! The `tiktoken` crate gives identical counts, and the tests compare the two. It is not used at
//! run time because it unpacks its vocabulary on first use, which takes about 90 ms and 30 MB.
//! haft's first request must leave within 50 ms, and the whole process must stay below 30 MB. Here
//! the vocabulary is a table in the binary, extracted from that crate by `build.rs`: nothing is
//! loaded, and of its 4 MB only the pages that a text touches become resident.
//!
//! A text is split into pieces (`split`), and the bytes of each piece are merged into tokens
//! (`merge`), both by the tables in `table`. Special tokens such as `<|endoftext|>` are counted as
//! plain text.

mod layout;
mod merge;
mod split;
mod table;

#[cfg(test)]
mod tests;

use haft_types::TokenCounter;
use merge::Merger;
use split::TokenPieces;

/// Counts tokens as OpenAI's current models do. For other models the count is a close estimate.
///
/// ```
/// use haft_model::O200k;
/// use haft_types::TokenCounter;
///
/// assert_eq!(O200k.count_text("hello world"), 2);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct O200k;

impl TokenCounter for O200k {
    fn count_text(&self, text: &str) -> u32 {
        let mut merger = Merger::default();
        TokenPieces::new(text).fold(0, |tokens: u32, piece| {
            tokens.saturating_add(merger.count_tokens(piece.as_bytes()))
        })
    }
}
