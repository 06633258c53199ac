//! Extracts the terms of a text for the full-text index.
//!
//! Invariant: queries and texts are split in one way. Words stay next to the words they followed,
//! so that phrases are found; names in `camelCase` are found whole and by their parts.

use haft_text::{TermScript, TermStyle, TextRun, fold_char};

/// Longer words are data rather than words; their beginning is enough to find them.
const LONGEST: usize = 64;
/// The number of bytes of a text that are indexed. Outputs of commands can be longer, but users
/// rarely search for their end.
const MOST: usize = 256 * 1024;

/// The style by which conversations are split into terms.
pub(crate) const STYLE: TermStyle = TermStyle::Prose;

/// Returns the terms of a run.
pub(crate) fn run_terms(run: &TextRun<'_>) -> Vec<String> {
    match run.script {
        TermScript::Spaced => vec![run.text.chars().map(fold_char).take(LONGEST).collect()],
        TermScript::Unspaced => run.pairs(),
    }
}

/// Returns the terms of a text, separated by spaces. The parts of names follow at the end, so that
/// consecutive words stay adjacent.
pub fn terms(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MOST)];
    let mut all = String::with_capacity(text.len());
    let mut parts = String::new();
    for run in STYLE.runs(text) {
        for term in run_terms(&run) {
            all.push_str(&term);
            all.push(' ');
        }
        if run.script == TermScript::Spaced {
            for part in STYLE.parts_of_name(run.text) {
                parts.extend(part.chars().map(fold_char).take(LONGEST));
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
    fn words_are_folded_and_signs_separate() {
        assert_eq!(terms("The READ_file, 2x!"), "the read file 2x ");
        assert_eq!(terms("Über-Straße"), "über straße ");
        assert_eq!(terms(" \n"), "");
    }

    #[test]
    fn scripts_without_spaces_become_pairs() {
        assert_eq!(terms("運行測試 ok"), "運行 行測 測試 試 ok ");
        assert_eq!(terms("a測b"), "a 測 b ");
    }

    #[test]
    fn names_are_found_by_their_parts() {
        assert_eq!(terms("call readFile now"), "call readfile now read file ");
    }

    #[test]
    fn data_is_cut() {
        assert_eq!(terms(&"x".repeat(1_000)).trim_end().len(), LONGEST);
        assert!(terms(&"word ".repeat(100_000)).len() <= MOST + 10);
        // Panics if a character is cut.
        terms(&"漢".repeat(100_000));
    }
}
