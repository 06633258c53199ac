//! The languages that models write most: their words and delimiters, from `languages.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The syntax of a language.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LanguageSyntax {
    /// The language's names, file extensions and whole file names, in lower case.
    pub(super) names: Vec<String>,
    pub(super) line_comments: Vec<String>,
    pub(super) comments: Option<(String, String)>,
    pub(super) quotes: Vec<StringSyntax>,
    /// The keywords, separated by spaces. `constants` and `defines` have the same format.
    pub(super) keywords: String,
    pub(super) constants: String,
    /// The words that are followed by the name that they define.
    pub(super) defines: String,
    /// The separator between a key and its value. `None` if the language has no keys.
    pub(super) key: Option<String>,
    /// Punctuation that may be part of a word.
    pub(super) in_words: String,
    /// Punctuation that starts the name of a variable.
    pub(super) before_words: String,
    /// True if capitalized words are names of types.
    pub(super) types: bool,
    /// True if words are case-insensitive.
    pub(super) any_case: bool,
    /// True if a word after `<` is a tag.
    pub(super) tags: bool,
    /// True if the comment delimiter may be inside a word.
    pub(super) words_hold_comments: bool,
    /// True if the first character determines the style of the line, as in a diff.
    pub(super) whole_lines: bool,
}

/// A kind of string literal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StringSyntax {
    pub(super) kind: StringKind,
    pub(super) open: String,
    /// The closing delimiter, if it differs from the opening one.
    close: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StringKind {
    /// A string that ends at the end of its line at the latest.
    Short,
    /// A string that may span lines.
    Long,
    /// A string that may span lines and has no escapes.
    Raw,
    /// A literal that contains one character. If more characters follow the delimiter, it does not
    /// open a literal.
    Char,
}

impl StringSyntax {
    pub(super) fn closing_delimiter(&self) -> &str {
        self.close.as_ref().unwrap_or(&self.open)
    }

    /// Returns true if `text` starts with a string of this kind.
    pub(super) fn is_opened_by(&self, text: &str) -> bool {
        let Some(behind) = text.strip_prefix(&self.open) else {
            return false;
        };
        if self.kind != StringKind::Char {
            return true;
        }
        let mut chars = behind.chars();
        match chars.next() {
            Some('\\') => true,
            Some(_) => chars.as_str().starts_with(self.closing_delimiter()),
            None => false,
        }
    }
}

/// All languages of the table; empty if the table can't be parsed, which a test rules out.
pub(super) static LANGUAGES: LazyLock<Vec<LanguageSyntax>> =
    LazyLock::new(|| parse_table().unwrap_or_default());

#[derive(Deserialize)]
struct LanguageTable {
    like: BTreeMap<String, toml::Table>,
    language: Vec<toml::Table>,
}

fn parse_table() -> Result<Vec<LanguageSyntax>, toml::de::Error> {
    let LanguageTable { like, language } = toml::from_str(include_str!("languages.toml"))?;
    let whole = |mut own: toml::Table| {
        let base = own.remove("like").and_then(|name| like.get(name.as_str()?));
        let mut fields = base.cloned().unwrap_or_default();
        fields.extend(own);
        fields.try_into()
    };
    language.into_iter().map(whole).collect()
}

/// Finds a language by name, extension or file name.
pub(super) fn find_language(name: &str) -> Option<&'static LanguageSyntax> {
    LANGUAGES
        .iter()
        .find(|language| language.names.iter().any(|known| known == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_parsed() {
        assert_eq!(parse_table().unwrap().len(), 18);
        assert_eq!(
            find_language("php").unwrap().comments,
            Some(("/*".to_owned(), "*/".to_owned())),
            "as in C"
        );
    }
}
