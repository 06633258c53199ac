//! Splits text into terms for a full-text index. The index itself depends on no programming or
//! natural language.
//!
//! Invariant: the terms of a text depend only on the text and the [`TermStyle`], and a query is
//! split like a text. Scripts that are written without spaces become overlapping pairs of
//! characters (`測試中` becomes `測試`, `試中`, `中`), so that any two adjacent characters are found. The
//! terms of an index are stored on disk: a style never changes.

/// The rules for splitting text into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermStyle {
    /// Words consist of letters and digits. Names such as `readFile` are also split at capital
    /// letters.
    Prose,
    /// Words consist of letters, digits and `_`. Names are also split at capital letters, at `_`,
    /// and between letters and digits.
    Code,
}

/// The kind of script in which a part of a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermScript {
    /// A script that separates words by spaces or punctuation.
    Spaced,
    Unspaced,
}

/// A run of text that is indexed as a unit: a word, or consecutive characters of a script without
/// spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRun<'a> {
    pub script: TermScript,
    /// The run as it is written in the text.
    pub text: &'a str,
}

/// Converts a character to lowercase for comparison.
pub fn fold_char(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

impl TermStyle {
    /// Returns the kind of script to which `c` belongs. Returns `None` if `c` separates words.
    pub fn classify_char(self, c: char) -> Option<TermScript> {
        if is_unspaced(c) {
            Some(TermScript::Unspaced)
        } else if c.is_alphanumeric() || (self == Self::Code && c == '_') {
            Some(TermScript::Spaced)
        } else {
            None
        }
    }

    /// Returns the words, and the runs of scripts without spaces, of a text in order.
    pub fn split_runs(self, text: &str) -> impl Iterator<Item = TextRun<'_>> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let start = rest.find(|c| self.classify_char(c).is_some())?;
            rest = rest.get(start..)?;
            let script = rest.chars().next().and_then(|c| self.classify_char(c))?;
            let end = rest
                .find(|c| self.classify_char(c) != Some(script))
                .unwrap_or(rest.len());
            let (text, after) = rest.split_at(end);
            rest = after;
            Some(TextRun { script, text })
        })
    }

    /// Returns the parts of a compound name such as `readFile` or `HTTPServer`. [`TermStyle::Code`]
    /// also splits names such as `read_file` and `utf8`. Returns nothing for a plain word.
    pub fn split_name(self, name: &str) -> Vec<&str> {
        let characters: Vec<(usize, char)> = name.char_indices().collect();
        let mut starts = vec![0];
        for index in 1..characters.len() {
            let (at, here) = characters[index];
            let (_, before) = characters[index - 1];
            let lower_after = characters
                .get(index + 1)
                .is_some_and(|(_, next)| next.is_lowercase());
            let begins = match self {
                Self::Prose => {
                    let after_word = before.is_lowercase() || before.is_numeric();
                    here.is_uppercase() && (after_word || (before.is_uppercase() && lower_after))
                }
                Self::Code => {
                    let new_word = here.is_uppercase() && (!before.is_uppercase() || lower_after);
                    before == '_' || new_word || here.is_numeric() != before.is_numeric()
                }
            };
            if begins {
                starts.push(at);
            }
        }
        if starts.len() == 1 {
            return Vec::new();
        }
        let ends = starts.iter().skip(1).copied().chain([name.len()]);
        let parts = starts
            .iter()
            .zip(ends)
            .filter_map(|(start, end)| name.get(*start..end));
        match self {
            Self::Prose => parts.collect(),
            Self::Code => parts
                .map(|part| part.trim_matches('_'))
                .filter(|part| !part.is_empty())
                .collect(),
        }
    }
}

impl TextRun<'_> {
    /// Returns the run in lowercase, for comparison.
    pub fn fold_text(&self) -> String {
        self.text.chars().map(fold_char).collect()
    }

    /// Returns all pairs of adjacent characters of the run, followed by its last character alone,
    /// so that the last character can be found by itself.
    pub fn overlapping_pairs(&self) -> Vec<String> {
        let characters: Vec<char> = self.text.chars().map(fold_char).collect();
        let pairs = characters.windows(2).map(|pair| pair.iter().collect());
        pairs
            .chain(characters.last().map(ToString::to_string))
            .collect()
    }
}

/// True for characters of scripts that are treated as written without spaces: Han, kana, Hangul and
/// Thai.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0e7f | 0x3005..=0x3007 | 0x3040..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff
        | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x20000..=0x3134f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(style: TermStyle, text: &str) -> Vec<&str> {
        style.split_runs(text).map(|run| run.text).collect()
    }

    #[test]
    fn runs_split_at_signs_and_for_prose_at_underscores() {
        assert_eq!(
            texts(TermStyle::Prose, "The READ_file, 2x!"),
            ["The", "READ", "file", "2x"]
        );
        assert_eq!(
            texts(TermStyle::Code, "The READ_file, 2x!"),
            ["The", "READ_file", "2x"]
        );
        assert_eq!(texts(TermStyle::Code, "a測試b"), ["a", "測試", "b"]);
    }

    #[test]
    fn parts_of_name_splits_at_case_digits_and_underscores() {
        for (name, prose, code) in [
            (
                "HTTPServer2Go",
                vec!["HTTP", "Server2", "Go"],
                vec!["HTTP", "Server", "2", "Go"],
            ),
            ("readFile", vec!["read", "File"], vec!["read", "File"]),
            ("read_file", vec![], vec!["read", "file"]),
            ("utf8", vec![], vec!["utf", "8"]),
            ("Word", vec![], vec![]),
            ("WORD", vec![], vec![]),
        ] {
            assert_eq!(TermStyle::Prose.split_name(name), prose);
            assert_eq!(TermStyle::Code.split_name(name), code);
        }
    }

    #[test]
    fn pairs_are_taken_from_scripts_without_spaces() {
        let run = TermStyle::Prose.split_runs("行測試").next().unwrap();
        assert_eq!(
            (run.script, run.overlapping_pairs()),
            (
                TermScript::Unspaced,
                vec!["行測".into(), "測試".into(), "試".to_owned()]
            )
        );
    }

    proptest! {
        /// Only characters that separate words are dropped.
        #[test]
        fn runs_keep_every_character_of_a_word(text in "\\PC{0,60}") {
            for style in [TermStyle::Prose, TermStyle::Code] {
                let kept: String = text.chars().filter(|c| style.classify_char(*c).is_some()).collect();
                prop_assert_eq!(texts(style, &text).concat(), kept);
            }
        }
    }
}
