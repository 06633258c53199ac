//! Text as terms: what a full-text index is given, so that the index itself need not know languages.
//!
//! Invariant: the terms of a text depend on nothing but the text, and a query is cut the same way. Scripts that are written
//! without spaces become overlapping pairs of characters (`測試中` is `測試`, `試中`, `中`), so that any two characters that
//! follow each other are found. Names in `camelCase` are found whole and by their parts.

/// A word longer than this is no word but data; its beginning is enough to find it.
const LONGEST: usize = 64;
/// What of a text is indexed. Outputs of commands can be longer, and their end is rarely what anyone looks for.
const MOST: usize = 256 * 1024;

/// A character as it is compared.
pub(crate) fn fold(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// What a piece of text is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Letters and digits between spaces or signs.
    Word,
    /// Characters of a script without spaces.
    Unspaced,
}

/// A word, or characters without space between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
}

fn kind(c: char) -> Option<Kind> {
    if is_unspaced(c) {
        Some(Kind::Unspaced)
    } else if c.is_alphanumeric() {
        Some(Kind::Word)
    } else {
        None
    }
}

/// Han, kana, Hangul and Thai.
fn is_unspaced(c: char) -> bool {
    matches!(c as u32,
        0x0e00..=0x0e7f | 0x3005..=0x3007 | 0x3040..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff
        | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x20000..=0x3134f)
}

/// Whether a run ends between these two.
pub(crate) fn runs_differ(before: char, after: char) -> bool {
    kind(before) != kind(after)
}

/// The runs of a text, in order.
pub(crate) fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(|c| kind(c).is_some())?;
        rest = &rest[start..];
        let kind_here = rest.chars().next().and_then(kind)?;
        let end = rest.find(|c| kind(c) != Some(kind_here)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        Some(Run { kind: kind_here, text: run })
    })
}

impl Run<'_> {
    /// The run as it is compared.
    pub(crate) fn folded(&self) -> String {
        self.text.chars().map(fold).collect()
    }

    /// Its terms. The last character of an unspaced run is one by itself, so that it is found at the end of a sentence too.
    pub(crate) fn terms(&self) -> Vec<String> {
        match self.kind {
            Kind::Word => vec![self.text.chars().map(fold).take(LONGEST).collect()],
            Kind::Unspaced => {
                let characters: Vec<char> = self.text.chars().map(fold).collect();
                let pairs = characters.windows(2).map(|pair| pair.iter().collect());
                pairs.chain(characters.last().map(ToString::to_string)).collect()
            }
        }
    }
}

/// The terms of a text, separated by spaces; the parts of names stand at the end, so that words that follow each other still do.
pub(crate) fn terms(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MOST)];
    let (mut all, mut parts) = (String::with_capacity(text.len()), String::new());
    for run in runs(text) {
        for term in run.terms() {
            all.push_str(&term);
            all.push(' ');
        }
        if run.kind == Kind::Word {
            for part in parts_of_name(run.text) {
                parts.extend(part.chars().map(fold).take(LONGEST));
                parts.push(' ');
            }
        }
    }
    all + &parts
}

/// The parts of a name like `readFile` or `HTTPServer`; none for a plain word.
fn parts_of_name(word: &str) -> Vec<&str> {
    let characters: Vec<(usize, char)> = word.char_indices().collect();
    let mut starts = vec![0];
    for index in 1..characters.len() {
        let (at, c) = characters[index];
        let before = characters[index - 1].1;
        let lower_after = characters.get(index + 1).is_some_and(|(_, next)| next.is_lowercase());
        if c.is_uppercase() && (before.is_lowercase() || before.is_numeric() || (before.is_uppercase() && lower_after))
        {
            starts.push(at);
        }
    }
    if starts.len() == 1 {
        return Vec::new();
    }
    starts.iter().zip(starts.iter().skip(1).chain([&word.len()])).map(|(start, end)| &word[*start..*end]).collect()
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
        assert_eq!(parts_of_name("HTTPServer2Go"), ["HTTP", "Server2", "Go"]);
        assert_eq!(parts_of_name("Word"), Vec::<&str>::new());
        assert_eq!(parts_of_name("WORD"), Vec::<&str>::new());
    }

    #[test]
    fn data_is_cut() {
        assert_eq!(terms(&"x".repeat(1_000)).trim_end().len(), LONGEST);
        assert!(terms(&"word ".repeat(100_000)).len() <= MOST + 10);
        // A cut inside a character would panic.
        terms(&"漢".repeat(100_000));
    }
}
