//! Highlights code line by line.
//!
//! Recognizes comments, strings and words of a language by tables of words and delimiters, not by
//! grammars: a grammar library cost a tenth of a second and ten megabytes per language. Invariant:
//! each line is read once, in order, in time linear in its length, and its text doesn't change.

mod languages;

use std::path::Path;

use crate::line::{StyledLine, StyledSpan, TextStyle};
use languages::{LanguageSyntax, StringKind, StringSyntax};

/// The maximum length, in bytes, of a line that is highlighted. Longer lines are data, not code.
const MAX_LINE_BYTES: usize = 2_000;

/// A highlighter of code. It keeps the state between two lines, such as an open comment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Highlighter {
    /// The language; `None` if it isn't known.
    language: Option<&'static LanguageSyntax>,
    inside: ScannerState,
}

/// The construct that is open at the end of a line.
#[derive(Clone, Copy, Debug, Default)]
enum ScannerState {
    #[default]
    Code,
    /// A comment that ends with this delimiter.
    Comment(&'static str),
    Text(&'static StringSyntax),
}

impl Highlighter {
    /// Creates the highlighter for the info string of a code fence, such as `rust`, `py` or `c++
    /// title=x`.
    pub(crate) fn for_language(name: &str) -> Self {
        let first = name
            .split([' ', ',', '{', '\t'])
            .find(|word| !word.is_empty())
            .unwrap_or_default();
        Self {
            language: languages::find_language(&first.to_lowercase()),
            inside: ScannerState::Code,
        }
    }

    /// Creates the highlighter for the file at `path`, chosen by its name or extension.
    pub(crate) fn for_path(path: &str) -> Self {
        let path = Path::new(path.trim());
        let names = [path.file_name(), path.extension()];
        let mut names = names
            .into_iter()
            .flatten()
            .filter_map(|name| Some(name.to_str()?.to_lowercase()));
        let language = names.find_map(|name| languages::find_language(&name));
        Self {
            language,
            inside: ScannerState::Code,
        }
    }

    /// Highlights the next line.
    pub(crate) fn highlight_line(&mut self, text: &str) -> StyledLine {
        // Sanitized first, because the spans below are only cut from it.
        let clean = StyledLine::new(text, TextStyle::Plain);
        let Some(language) = self.language else {
            return clean;
        };
        let text = clean.plain();
        if text.len() > MAX_LINE_BYTES {
            return clean;
        }
        let mut reader = CodeScanner {
            text: &text,
            at: 0,
            language,
            inside: self.inside,
            line: StyledLine::empty(),
            defined: false,
        };
        reader.scan_line();
        self.inside = reader.inside;
        reader.line
    }
}

/// The state of reading a line of code.
struct CodeScanner<'a> {
    text: &'a str,
    at: usize,
    language: &'static LanguageSyntax,
    inside: ScannerState,
    line: StyledLine,
    /// True if the next word is a name that is being defined.
    defined: bool,
}

impl<'a> CodeScanner<'a> {
    fn remaining_text(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Adds the next `bytes` bytes as a span.
    fn push_span(&mut self, bytes: usize, style: TextStyle) {
        let piece = &self.text[self.at..self.at + bytes];
        self.at += bytes;
        if !piece.is_empty() {
            self.line
                .push(StyledSpan::from_sanitized(piece.to_owned(), style));
        }
    }

    fn scan_line(&mut self) {
        if self.language.whole_lines {
            let style = match self.text.as_bytes().first() {
                Some(b'+') => TextStyle::Added,
                Some(b'-') => TextStyle::Removed,
                Some(b'@') => TextStyle::Accent,
                _ => TextStyle::Plain,
            };
            return self.push_span(self.text.len(), style);
        }
        while !self.remaining_text().is_empty() {
            match self.inside {
                ScannerState::Comment(end) => self.scan_comment(end, 0),
                ScannerState::Text(quote) => self.scan_string(quote, 0),
                ScannerState::Code => self.scan_code(),
            }
        }
        // A single-line string ends with its line.
        if let ScannerState::Text(quote) = self.inside
            && matches!(quote.kind, StringKind::Short | StringKind::Char)
        {
            self.inside = ScannerState::Code;
        }
    }

    fn scan_comment(&mut self, end: &'static str, begun: usize) {
        if let Some(found) = self.remaining_text()[begun..].find(end) {
            self.push_span(begun + found + end.len(), TextStyle::Comment);
            self.inside = ScannerState::Code;
        } else {
            self.push_span(self.remaining_text().len(), TextStyle::Comment);
            self.inside = ScannerState::Comment(end);
        }
    }

    fn scan_string(&mut self, quote: &'static StringSyntax, begun: usize) {
        let rest = self.remaining_text();
        let mut escaped = false;
        for (place, c) in rest.char_indices().filter(|(place, _)| *place >= begun) {
            if escaped {
                escaped = false;
            } else if c == '\\' && quote.kind != StringKind::Raw {
                escaped = true;
            } else if rest[place..].starts_with(quote.closing_delimiter()) {
                self.inside = ScannerState::Code;
                let end = place + quote.closing_delimiter().len();
                let style = if self.is_key(&rest[end..]) {
                    TextStyle::Number
                } else {
                    TextStyle::Literal
                };
                return self.push_span(end, style);
            }
        }
        self.inside = ScannerState::Text(quote);
        self.push_span(rest.len(), TextStyle::Literal);
    }

    /// Returns true if the word before `behind` is a key, because the separator between keys and
    /// values follows.
    fn is_key(&self, behind: &str) -> bool {
        self.language
            .key
            .as_ref()
            .is_some_and(|key| behind.trim_start().starts_with(key))
    }

    fn scan_code(&mut self) {
        let rest = self.remaining_text();
        let Some(first) = rest.chars().next() else {
            return;
        };
        let begins = self.at == 0 || self.text[..self.at].ends_with([' ', '(', ';']);
        let comment = self
            .language
            .line_comments
            .iter()
            .any(|mark| rest.starts_with(mark));
        if comment && (begins || !self.language.words_hold_comments) {
            return self.push_span(rest.len(), TextStyle::Comment);
        }
        if let Some((open, close)) = self
            .language
            .comments
            .as_ref()
            .filter(|(open, _)| rest.starts_with(open))
        {
            return self.scan_comment(close, open.len());
        }
        if let Some(quote) = self
            .language
            .quotes
            .iter()
            .find(|quote| quote.is_opened_by(rest))
        {
            return self.scan_string(quote, quote.open.len());
        }
        if first.is_ascii_digit() {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || "._".contains(c)));
            return self.push_span(end.unwrap_or(rest.len()), TextStyle::Number);
        }
        let in_word =
            |c: char| c.is_alphanumeric() || c == '_' || self.language.in_words.contains(c);
        if in_word(first) || self.language.before_words.contains(first) {
            let body = first.len_utf8();
            let end = rest[body..]
                .find(|c| !in_word(c))
                .map_or(rest.len(), |end| body + end);
            let style = self.choose_word_style(&rest[..end], &rest[end..]);
            return self.push_span(end, style);
        }
        self.push_span(first.len_utf8(), TextStyle::Plain);
    }

    fn choose_word_style(&mut self, word: &str, behind: &str) -> TextStyle {
        let language = self.language;
        let same = |known: &str| {
            if language.any_case {
                known.eq_ignore_ascii_case(word)
            } else {
                known == word
            }
        };
        let is_in = |list: &str| list.split(' ').any(same);
        let defined = std::mem::replace(
            &mut self.defined,
            language.defines.split(' ').any(|known| known == word),
        );
        let after_bracket = self.text[..self.at].trim_end_matches('/').ends_with('<');
        if is_in(&language.keywords) || language.tags && after_bracket {
            return TextStyle::Keyword;
        }
        if defined {
            return TextStyle::Strong;
        }
        let named = language.key.is_some()
            && self.text[..self.at]
                .trim_start_matches([' ', '-'])
                .is_empty();
        let variable = word.starts_with(|c| language.before_words.contains(c));
        let capitals = word.chars().next().is_some_and(char::is_uppercase) && language.types;
        if is_in(&language.constants) || named && self.is_key(behind) || variable || capitals {
            return TextStyle::Number;
        }
        TextStyle::Plain
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the words that aren't plain, and their styles.
    fn styled_words(language: &str, text: &str) -> Vec<(String, TextStyle)> {
        let mut highlighter = Highlighter::for_language(language);
        let spans = text
            .lines()
            .flat_map(|line| highlighter.highlight_line(line).spans().to_vec());
        let told = spans.filter(|span| span.style() != TextStyle::Plain);
        told.map(|span| (span.text().to_owned(), span.style()))
            .collect()
    }

    fn assert_styles(language: &str, text: &str, expected: &[(&str, TextStyle)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(text, style)| ((*text).to_owned(), *style))
            .collect();
        assert_eq!(styled_words(language, text), expected, "{text}");
    }

    #[test]
    fn highlight_styles_words() {
        use TextStyle::{Comment, Keyword, Literal, Number, Strong};
        let rust = "pub fn sum<'a>(of: &'a Vec<u8>) -> char { '\\n'; \"a\\\"b\"; 0x1f } // b";
        assert_styles(
            "rust",
            rust,
            &[
                ("pub", Keyword),
                ("fn", Keyword),
                ("sum", Strong),
                ("Vec", Number),
                ("'\\n'", Literal),
                ("\"a\\\"b\"", Literal),
                ("0x1f", Number),
                ("// b", Comment),
            ],
        );
        assert_styles(
            "py",
            "def f(): # c",
            &[("def", Keyword), ("f", Strong), ("# c", Comment)],
        );
        assert_styles(
            "sh",
            "echo \"$a\" #b ${c#d} $e",
            &[
                ("echo", Keyword),
                ("\"$a\"", Literal),
                ("#b ${c#d} $e", Comment),
            ],
        );
        assert_styles(
            "sh",
            "if x$e; then",
            &[("if", Keyword), ("$e", Number), ("then", Keyword)],
        );
        assert_styles(
            "json",
            "{\"a\": \"b\", \"c\": true}",
            &[
                ("\"a\"", Number),
                ("\"b\"", Literal),
                ("\"c\"", Number),
                ("true", Number),
            ],
        );
        assert_styles(
            "yaml",
            "- name: x # y",
            &[("name", Number), ("# y", Comment)],
        );
        assert_styles(
            "toml",
            "[a]\nkey = 'v'",
            &[("key", Number), ("'v'", Literal)],
        );
        assert_styles(
            "sql",
            "Select a FROM b -- c",
            &[("Select", Keyword), ("FROM", Keyword), ("-- c", Comment)],
        );
        assert_styles(
            "html",
            "<p class=\"a\">if</p>",
            &[("p", Keyword), ("\"a\"", Literal), ("p", Keyword)],
        );
        assert_styles(
            "diff",
            "-a\n+b\n c",
            &[("-a", TextStyle::Removed), ("+b", TextStyle::Added)],
        );
    }

    #[test]
    fn highlight_continues_open_constructs() {
        use TextStyle::{Comment, Keyword, Literal};
        assert_styles(
            "c",
            "/* a\nb */ int",
            &[("/* a", Comment), ("b */", Comment), ("int", Keyword)],
        );
        assert_styles(
            "py",
            "\"\"\"a\nb\"\"\" if",
            &[("\"\"\"a", Literal), ("b\"\"\"", Literal), ("if", Keyword)],
        );
        assert_styles(
            "c",
            "\"not closed\nint",
            &[("\"not closed", Literal), ("int", Keyword)],
        );
    }

    #[test]
    fn highlight_finds_languages_by_alias() {
        for name in [
            "rust",
            "rs",
            "Rust",
            "python",
            "py",
            "ts",
            "typescript",
            "tsx",
            "bash",
            "sh",
            "toml",
            "c++",
            "go",
            "yaml",
            "rust,ignore",
        ] {
            assert!(Highlighter::for_language(name).language.is_some(), "{name}");
        }
        for path in ["src/lib.rs", "Makefile", "Dockerfile", "a/b.yml", "x.TSX"] {
            assert!(Highlighter::for_path(path).language.is_some(), "{path}");
        }
        for name in ["", "text", "klingon"] {
            assert!(Highlighter::for_language(name).language.is_none(), "{name}");
        }
    }

    #[test]
    fn highlight_skips_long_lines() {
        assert_eq!(styled_words("rust", &"\"a\" ".repeat(250_000)), []);
    }

    proptest! {
        #[test]
        fn highlight_keeps_the_text(
            language in prop::sample::select(languages::LANGUAGES.iter().map(|language| language.names[0].as_str()).collect::<Vec<_>>()),
            lines in prop::collection::vec("[a-zA-Z0-9\"'`/*<>{}()#$@+:=\\\\ \u{1b}\u{202e}\u{301}日-]{0,40}", 0..8),
        ) {
            let mut highlighter = Highlighter::for_language(language);
            for line in &lines {
                prop_assert_eq!(highlighter.highlight_line(line).plain(), StyledLine::new(line, TextStyle::Plain).plain());
            }
        }
    }
}
