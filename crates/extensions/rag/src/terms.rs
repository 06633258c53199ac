//! Splits text into the terms of the full-text index.
//!
//! Invariant: questions are split in the way the text is. A name is found by its whole and by its
//! parts (`readFile2` yields `readfile2`, `read`, `file`). English word endings are left to the
//! index's `porter` tokenizer.

use haft_text::{TermScript, TermStyle};

/// The rules by which documents and questions are split into words. They are those for source code,
/// because many documents are source code.
const TERM_STYLE: TermStyle = TermStyle::Code;

/// The maximum length of a word, in characters. Longer words are considered to be data and are
/// skipped.
const MAX_WORD_CHARS: usize = 64;

/// Words that are ignored in questions, because they don't help to find an answer.
const STOP_WORDS: [&str; 85] = [
    "a", "about", "after", "all", "also", "an", "and", "another", "any", "are", "as", "at", "be",
    "because", "by", "can", "could", "do", "does", "each", "every", "for", "from", "had", "has",
    "have", "how", "if", "in", "into", "is", "it", "its", "many", "may", "more", "most", "must",
    "never", "no", "not", "of", "on", "one", "only", "or", "other", "our", "out", "over", "own",
    "same", "several", "should", "so", "some", "such", "than", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "to", "two", "until", "up", "was", "we", "what",
    "when", "where", "which", "while", "who", "why", "will", "with", "would", "you", "your",
];

/// Appends the search terms in `text` to `into`, each followed by a space.
pub(crate) fn push_terms(text: &str, into: &mut String) {
    visit_terms(text, &mut |term| {
        into.push_str(term);
        into.push(' ');
    });
}

/// Returns the search terms in `text` as one string, each followed by a space.
pub(crate) fn split_terms(text: &str) -> String {
    let mut all = String::with_capacity(text.len() + text.len() / 4);
    push_terms(text, &mut all);
    all
}

/// Returns the search terms of a question, in the order of the question. Stop words are omitted,
/// unless the question consists only of stop words.
pub(crate) fn split_question_terms(question: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let mut stop_words = Vec::new();
    visit_terms(question, &mut |term| {
        let list: &mut Vec<String> = if STOP_WORDS.contains(&term) {
            &mut stop_words
        } else {
            &mut kept
        };
        list.push(term.to_owned());
    });
    if kept.is_empty() { stop_words } else { kept }
}

fn visit_terms(text: &str, visit: &mut dyn FnMut(&str)) {
    for run in TERM_STYLE.split_runs(text) {
        match run.script {
            TermScript::Spaced => {
                let name = run.text.trim_matches('_');
                if name.is_empty() || name.chars().nth(MAX_WORD_CHARS).is_some() {
                    continue;
                }
                visit(&name.to_lowercase());
                // A part that consists of a single character would match everywhere.
                for part in TERM_STYLE
                    .split_name(name)
                    .into_iter()
                    .filter(|part| part.chars().nth(1).is_some())
                {
                    visit(&part.to_lowercase());
                }
            }
            TermScript::Unspaced => run.overlapping_pairs().iter().for_each(|pair| visit(pair)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terms_include_names_and_their_parts() {
        assert_eq!(
            split_terms("call readFile(now)"),
            "call readfile read file now "
        );
        assert_eq!(
            split_terms("read_file2 __init__"),
            "read_file2 read file init "
        );
        assert_eq!(split_terms("utf8 h2 SHA256"), "utf8 utf h2 sha256 sha 256 ");
    }

    #[test]
    fn terms_of_scripts_without_spaces_are_pairs() {
        assert_eq!(split_terms("運行測試 ok"), "運行 行測 測試 試 ok ");
        assert_eq!(split_terms("a測b"), "a 測 b ");
        assert_eq!(
            split_question_terms("怎么读取文件？"),
            ["怎么", "么读", "读取", "取文", "文件", "件"]
        );
    }

    #[test]
    fn question_terms_drop_stop_words_but_never_all_words() {
        assert_eq!(
            split_question_terms("How is the parser of the parser tested?"),
            ["parser", "parser", "tested"]
        );
        assert_eq!(split_question_terms("what is it"), ["what", "is", "it"]);
        assert!(split_question_terms(" ?! \n").is_empty());
    }

    #[test]
    fn terms_skip_very_long_words() {
        assert_eq!(split_terms(&format!("a {} b", "x".repeat(65))), "a b ");
    }

    proptest! {
        /// A question that consists of a text's words finds its terms.
        #[test]
        fn question_terms_of_a_text_are_among_its_terms(text in "\\PC{0,60}") {
            let indexed = split_terms(&text);
            let known: Vec<&str> = indexed.split(' ').collect();
            for term in split_question_terms(&text) {
                prop_assert!(known.contains(&term.as_str()), "{term:?} of {text:?} is not in {indexed:?}");
            }
            prop_assert!(!indexed.contains("  "));
        }
    }
}
