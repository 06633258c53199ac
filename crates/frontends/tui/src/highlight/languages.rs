//! The languages models write most: their words and delimiters, read from `languages.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// What is known of a language.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LanguageSyntax {
    /// Names, endings of files and whole names of files, in small characters.
    pub(super) names: Vec<String>,
    pub(super) line_comments: Vec<String>,
    pub(super) comments: Option<(String, String)>,
    pub(super) quotes: Vec<StringSyntax>,
    /// One after another, with a space between; so are the constants and `defines`.
    pub(super) keywords: String,
    pub(super) constants: String,
    /// Words after which a name is given.
    pub(super) defines: String,
    /// What stands between a name and its value.
    pub(super) key: Option<String>,
    /// Signs that words may hold beside characters.
    pub(super) in_words: String,
    /// Signs that begin the name of a variable.
    pub(super) before_words: String,
    /// Whether words that begin with a capital are types.
    pub(super) types: bool,
    /// Whether words mean the same in capitals.
    pub(super) any_case: bool,
    /// Whether a word behind `<` is a tag.
    pub(super) tags: bool,
    /// Whether the sign of a comment may stand within a word.
    pub(super) words_hold_comments: bool,
    /// Whether the first character of a line says what the line is, as in a diff.
    pub(super) whole_lines: bool,
}

/// A way to write a string.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StringSyntax {
    pub(super) kind: StringKind,
    pub(super) open: String,
    /// Where it does not end as it begins.
    close: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StringKind {
    /// Ends with its line.
    Short,
    /// May go on in the next line.
    Long,
    /// Everything in it means itself, and it may go on in the next line.
    Raw,
    /// Holds one character: otherwise the sign means something else.
    Char,
}

impl StringSyntax {
    pub(super) fn close(&self) -> &str {
        self.close.as_ref().unwrap_or(&self.open)
    }

    /// Whether a string begins here.
    pub(super) fn opens(&self, text: &str) -> bool {
        let Some(behind) = text.strip_prefix(&self.open) else {
            return false;
        };
        if self.kind != StringKind::Char {
            return true;
        }
        let mut chars = behind.chars();
        match chars.next() {
            Some('\\') => true,
            Some(_) => chars.as_str().starts_with(self.close()),
            None => false,
        }
    }
}

/// Every language that is known; none if the table cannot be read, which a test rules out.
pub(super) static ALL: LazyLock<Vec<LanguageSyntax>> = LazyLock::new(|| read().unwrap_or_default());

#[derive(Deserialize)]
struct LanguageTable {
    like: BTreeMap<String, toml::Table>,
    language: Vec<toml::Table>,
}

fn read() -> Result<Vec<LanguageSyntax>, toml::de::Error> {
    let LanguageTable { like, language } = toml::from_str(include_str!("languages.toml"))?;
    let whole = |mut own: toml::Table| {
        let base = own.remove("like").and_then(|name| like.get(name.as_str()?));
        let mut fields = base.cloned().unwrap_or_default();
        fields.extend(own);
        fields.try_into()
    };
    language.into_iter().map(whole).collect()
}

/// The language of that name.
pub(super) fn named(name: &str) -> Option<&'static LanguageSyntax> {
    ALL.iter()
        .find(|language| language.names.iter().any(|known| known == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_is_read() {
        assert_eq!(read().unwrap().len(), 18);
        assert_eq!(
            named("php").unwrap().comments,
            Some(("/*".to_owned(), "*/".to_owned())),
            "as in C"
        );
    }
}
