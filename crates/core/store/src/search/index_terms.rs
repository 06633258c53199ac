//! Extracts the terms of a text for the full-text index.
//!
//! Invariant: queries and texts are split by one set of rules. Words stay next to the words they
//! followed, so that phrases are found; names in `camelCase` are found whole and by their parts.

use haft_text::{TermScript, TermStyle, TextRun, fold_char};

/// The maximum length of an indexed word, in characters. Longer words are data rather than words,
/// and can be found only by their beginning.
const MAX_WORD_LEN: usize = 64;
/// The maximum number of bytes of a text that are indexed. Outputs of commands can be longer, but
/// users rarely search for the end of an output.
const MAX_INDEXED_BYTES: usize = 256 * 1024;

/// The rule by which messages and queries are split into terms.
pub(crate) const TERM_STYLE: TermStyle = TermStyle::Prose;

/// Returns the index terms of one run of text.
pub(crate) fn extract_run_terms(run: &TextRun<'_>) -> Vec<String> {
    match run.script {
        TermScript::Spaced => vec![run.text.chars().map(fold_char).take(MAX_WORD_LEN).collect()],
        TermScript::Unspaced => run.overlapping_pairs(),
    }
}

/// Returns the index terms of a text, separated by spaces. Parts of compound names are appended at
/// the end, so that words that are adjacent in the text stay adjacent.
pub fn extract_terms(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MAX_INDEXED_BYTES)];
    let mut all = String::with_capacity(text.len());
    let mut parts = String::new();
    for run in TERM_STYLE.split_runs(text) {
        for term in extract_run_terms(&run) {
            all.push_str(&term);
            all.push(' ');
        }
        if run.script == TermScript::Spaced {
            for part in TERM_STYLE.split_name(run.text) {
                parts.extend(part.chars().map(fold_char).take(MAX_WORD_LEN));
                parts.push(' ');
            }
        }
    }
    all + &parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_lowercase_and_split_at_signs() {
        assert_eq!(extract_terms("The READ_file, 2x!"), "the read file 2x ");
        assert_eq!(extract_terms("Über-Straße"), "über straße ");
        assert_eq!(extract_terms(" \n"), "");
    }

    #[test]
    fn terms_of_scripts_without_spaces_are_pairs() {
        assert_eq!(extract_terms("運行測試 ok"), "運行 行測 測試 試 ok ");
        assert_eq!(extract_terms("a測b"), "a 測 b ");
    }

    #[test]
    fn terms_include_the_parts_of_a_name() {
        assert_eq!(
            extract_terms("call readFile now"),
            "call readfile now read file "
        );
    }

    #[test]
    fn terms_limit_the_length_of_words_and_text() {
        assert_eq!(
            extract_terms(&"x".repeat(1_000)).trim_end().len(),
            MAX_WORD_LEN
        );
        assert!(extract_terms(&"word ".repeat(100_000)).len() <= MAX_INDEXED_BYTES + 10);
        // Panics if a character is cut.
        extract_terms(&"漢".repeat(100_000));
    }
}
