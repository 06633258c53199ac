//! Exact token counts of `o200k_base` without a load time.
//!
//! The `tiktoken` crate counts the same, and the tests hold the two against each other. It is not
//! used at run time because it unpacks its vocabulary on first use: some 90 ms and 30 MB, where
//! haft's first request is to leave within 50 ms and the whole process is to stay below 30 MB. Here
//! the vocabulary is a table in the binary (`build.rs` takes it out of that crate): nothing is
//! loaded, and of 4 MB only the pages that a text touches become resident.
//!
//! A text is cut into pieces (`split`), and the bytes of each are merged into tokens (`merge`),
//! both by the tables in `table`. Special tokens such as `<|endoftext|>` are counted as the plain
//! text they are.

mod layout;
mod merge;
mod split;
mod table;

#[cfg(test)]
mod tests;

use haft_types::TokenCounter;
use merge::Merger;
use split::TokenPieces;

/// Counts tokens as OpenAI's current models do; for others it is a close estimate.
///
/// ```
/// use haft_model::O200k;
/// use haft_types::TokenCounter;
///
/// assert_eq!(O200k.text("hello world"), 2);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct O200k;

impl TokenCounter for O200k {
    fn text(&self, text: &str) -> u32 {
        let mut merger = Merger::default();
        TokenPieces::new(text).fold(0, |tokens: u32, piece| {
            tokens.saturating_add(merger.count(piece.as_bytes()))
        })
    }
}
