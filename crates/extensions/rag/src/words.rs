//! Text as terms: what the full-text index is given, so that the index itself need know neither programs nor languages.
//!
//! Invariant: the terms of a text depend on nothing but the text, and a question is cut the same way. A name is found whole and
//! by its parts (`readFile2` is `readfile2`, `read`, `file`); scripts that are written without spaces become overlapping pairs
//! of characters. Endings of English words are the index's own business (its `porter` tokenizer).

/// A word longer than this is no word but data.
const LONGEST: usize = 64;

/// Words that say nothing about what is asked.
const STOP: [&str; 85] = [
    "a", "about", "after", "all", "also", "an", "and", "another", "any", "are", "as", "at", "be", "because", "by",
    "can", "could", "do", "does", "each", "every", "for", "from", "had", "has", "have", "how", "if", "in", "into",
    "is", "it", "its", "many", "may", "more", "most", "must", "never", "no", "not", "of", "on", "one", "only", "or",
    "other", "our", "out", "over", "own", "same", "several", "should", "so", "some", "such", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "to", "two", "until", "up", "was", "we", "what", "when",
    "where", "which", "while", "who", "why", "will", "with", "would", "you", "your",
];

/// Appends the terms of a text, each followed by a space.
pub(crate) fn push_terms(text: &str, into: &mut String) {
    for run in runs(text) {
        run.each_term(&mut |term| {
            into.push_str(term);
            into.push(' ');
        });
    }
}

/// The terms of a text, separated by spaces.
pub(crate) fn terms(text: &str) -> String {
    let mut all = String::with_capacity(text.len() + text.len() / 4);
    push_terms(text, &mut all);
    all
}

/// The terms of a question in order, without words that say nothing. A question of nothing else keeps them.
pub(crate) fn question_terms(question: &str) -> Vec<String> {
    let (mut telling, mut rest) = (Vec::new(), Vec::new());
    for run in runs(question) {
        run.each_term(&mut |term| {
            let list: &mut Vec<String> = if STOP.contains(&term) { &mut rest } else { &mut telling };
            list.push(term.to_owned());
        });
    }
    if telling.is_empty() { rest } else { telling }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Letters, digits and `_`: a word or a name.
    Word,
    /// Characters of a script without spaces.
    Unspaced,
}

struct Run<'a> {
    script: Script,
    text: &'a str,
}

fn script(one: char) -> Option<Script> {
    if is_unspaced(one) {
        Some(Script::Unspaced)
    } else if one.is_alphanumeric() || one == '_' {
        Some(Script::Word)
    } else {
        None
    }
}

/// Han, kana, Hangul and Thai.
fn is_unspaced(one: char) -> bool {
    matches!(u32::from(one),
        0x0e00..=0x0e7f | 0x3005..=0x3007 | 0x3040..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff
        | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x20000..=0x3134f)
}

fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(|one| script(one).is_some())?;
        rest = rest.get(start..)?;
        let here = rest.chars().next().and_then(script)?;
        let end = rest.find(|one| script(one) != Some(here)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        Some(Run { script: here, text: run })
    })
}

impl Run<'_> {
    fn each_term(&self, visit: &mut dyn FnMut(&str)) {
        match self.script {
            Script::Word => {
                let name = self.text.trim_matches('_');
                if name.is_empty() || name.chars().nth(LONGEST).is_some() {
                    return;
                }
                visit(&name.to_lowercase());
                // A part that is a single letter or digit would be found everywhere.
                for part in parts(name).into_iter().filter(|part| part.chars().nth(1).is_some()) {
                    visit(&part.to_lowercase());
                }
            }
            Script::Unspaced => {
                let characters: Vec<char> = self.text.chars().collect();
                let mut pair = String::new();
                for two in characters.windows(2) {
                    pair.clear();
                    pair.extend(two);
                    visit(&pair);
                }
                // The last one by itself, so that a single character is found at the end of a sentence too.
                if let Some(last) = characters.last() {
                    visit(last.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }
}

/// The parts of a name like `readFile`, `HTTPServer`, `read_file` or `utf8`; none for a plain word.
fn parts(name: &str) -> Vec<&str> {
    let characters: Vec<(usize, char)> = name.char_indices().collect();
    let mut starts = vec![0];
    for index in 1..characters.len() {
        let ((at, here), (_, before)) = (characters[index], characters[index - 1]);
        let lower_after = characters.get(index + 1).is_some_and(|(_, next)| next.is_lowercase());
        let new_word = here.is_uppercase() && (!before.is_uppercase() || lower_after);
        if before == '_' || new_word || here.is_numeric() != before.is_numeric() {
            starts.push(at);
        }
    }
    if starts.len() == 1 {
        return Vec::new();
    }
    let ends = starts.iter().skip(1).copied().chain([name.len()]);
    let parts = starts.iter().zip(ends).filter_map(|(start, end)| name.get(*start..end));
    parts.map(|part| part.trim_matches('_')).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_found_whole_and_by_their_parts() {
        assert_eq!(terms("call readFile(now)"), "call readfile read file now ");
        assert_eq!(terms("read_file2 __init__"), "read_file2 read file init ");
        assert_eq!(parts("HTTPServer2Go"), ["HTTP", "Server", "2", "Go"]);
        assert_eq!(parts("Word"), Vec::<&str>::new());
        assert_eq!(parts("WORD"), Vec::<&str>::new());
        assert_eq!(terms("utf8 h2 SHA256"), "utf8 utf h2 sha256 sha 256 ");
    }

    #[test]
    fn scripts_without_spaces_become_pairs() {
        assert_eq!(terms("運行測試 ok"), "運行 行測 測試 試 ok ");
        assert_eq!(terms("a測b"), "a 測 b ");
        assert_eq!(question_terms("怎么读取文件？"), ["怎么", "么读", "读取", "取文", "文件", "件"]);
    }

    #[test]
    fn questions_lose_what_says_nothing_but_never_everything() {
        assert_eq!(question_terms("How is the parser of the parser tested?"), ["parser", "parser", "tested"]);
        assert_eq!(question_terms("what is it"), ["what", "is", "it"]);
        assert!(question_terms(" ?! \n").is_empty());
    }

    #[test]
    fn data_is_no_word() {
        assert_eq!(terms(&format!("a {} b", "x".repeat(65))), "a b ");
    }

    proptest! {
        /// A question that repeats a name of a text finds one of the text's terms.
        #[test]
        fn every_run_of_a_text_is_found_by_itself(text in "\\PC{0,60}") {
            let indexed = terms(&text);
            let known: Vec<&str> = indexed.split(' ').collect();
            for term in question_terms(&text) {
                prop_assert!(known.contains(&term.as_str()), "{term:?} of {text:?} is not in {indexed:?}");
            }
            prop_assert!(!indexed.contains("  "));
        }
    }
}
