//! Text for people by key: kept in Fluent files beside the front end that shows it, so that it can be translated.
//!
//! A key names its file: `trust-question` stands in `trust.ftl`. A file is parsed when one of its messages is first shown. Of
//! Fluent there are text, `{ $name }`, `{ "literal" }` and a choice by an argument, `{ $count -> [one] … *[other] … }`: by what
//! it reads as, then by its plural. The process has one [`Language`], which its front end chooses ([`speak`]); a message that is
//! not there in it is shown in English. This crate reads no files and no environment; what programs read (JSON, events, the
//! log) never goes through it.
//!
//! Read first: [`message!`] (how a front end shows one), [`MessageFile`], [`Language`].
//!
//! ```
//! use haft_messages::{MessageFile, message};
//!
//! static FILES: [MessageFile; 1] =
//!     [MessageFile::new("files", "files-found = { $count ->\n    [one] One file\n   *[other] { $count } files\n }.\n", "")];
//!
//! assert_eq!(message!(&FILES, "files-found", count = 2), "2 files.");
//! ```

mod language;

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::sync::OnceLock;

use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement, Variant, VariantKey};
use fluent_syntax::parser;

pub use language::{Language, agreement, in_english, speak, spoken};

/// One file of messages, all of whose keys begin with its name, in every language.
#[derive(Debug)]
pub struct MessageFile {
    name: &'static str,
    english: TranslatedFile,
    chinese: TranslatedFile,
}

/// It in one language.
#[derive(Debug)]
struct TranslatedFile {
    source: &'static str,
    messages: OnceLock<HashMap<&'static str, Message>>,
}

/// What is put in place of `$name` in a message.
pub type MessageArgument<'a> = (&'static str, &'a dyn Display);

#[derive(Debug)]
struct Message {
    pattern: Pattern<&'static str>,
    /// The text without arguments.
    plain: String,
}

impl MessageFile {
    /// The file `NAME.ftl` with this content in English and in Chinese.
    pub const fn new(name: &'static str, english: &'static str, chinese: &'static str) -> Self {
        Self { name, english: TranslatedFile::new(english), chinese: TranslatedFile::new(chinese) }
    }

    fn get(&self, language: Language, key: &str) -> Option<&Message> {
        let translated = match language {
            Language::English => None,
            Language::Chinese => self.chinese.get(key),
        };
        translated.or_else(|| self.english.get(key))
    }
}

impl TranslatedFile {
    const fn new(source: &'static str) -> Self {
        Self { source, messages: OnceLock::new() }
    }

    fn get(&self, key: &str) -> Option<&Message> {
        let parsed = || {
            // What is not a message is found by the tests of the crate the file belongs to.
            let file = parser::parse_runtime(self.source).unwrap_or_else(|(file, _)| file);
            let messages = file.body.into_iter().filter_map(|entry| match entry {
                Entry::Message(message) => Some((message.id.name, message.value?)),
                _ => None,
            });
            messages.map(|(key, pattern)| (key, Message { plain: filled(&pattern, &[]), pattern })).collect()
        };
        self.messages.get_or_init(parsed).get(key)
    }
}

/// The message of this key, which takes no arguments; the key itself if there is none.
pub fn plain_message(files: &'static [MessageFile], key: &'static str) -> &'static str {
    find(files, key).map_or(key, |message| &message.plain)
}

/// The message of this key with its arguments; the key itself if there is none.
pub fn filled_message(files: &'static [MessageFile], key: &'static str, arguments: &[MessageArgument<'_>]) -> String {
    find(files, key).map_or_else(|| key.to_owned(), |message| filled(&message.pattern, arguments))
}

fn find(files: &'static [MessageFile], key: &str) -> Option<&'static Message> {
    let name = key.split('-').next()?;
    files.iter().find(|file| file.name == name)?.get(spoken(), key)
}

fn filled(pattern: &Pattern<&'static str>, arguments: &[MessageArgument<'_>]) -> String {
    let mut text = String::new();
    for element in &pattern.elements {
        match element {
            PatternElement::TextElement { value } => text.push_str(value),
            PatternElement::Placeable { expression: Expression::Inline(inline) } => {
                text.push_str(&value(inline, arguments));
            }
            PatternElement::Placeable { expression: Expression::Select { selector, variants } } => {
                let chosen = value(selector, arguments);
                text.push_str(&variant(variants, &chosen).map_or(chosen, |one| filled(&one.value, arguments)));
            }
        }
    }
    text
}

fn value(expression: &InlineExpression<&'static str>, arguments: &[MessageArgument<'_>]) -> String {
    let mut text = String::new();
    match expression {
        InlineExpression::StringLiteral { value } | InlineExpression::NumberLiteral { value } => text.push_str(value),
        InlineExpression::VariableReference { id } => {
            if let Some((_, value)) = arguments.iter().find(|(name, _)| *name == id.name) {
                // Writing to a String cannot fail.
                let _ = write!(text, "{value}");
            }
        }
        _ => {}
    }
    text
}

fn variant<'a>(variants: &'a [Variant<&'static str>], chosen: &str) -> Option<&'a Variant<&'static str>> {
    let named = |wanted: &str| {
        variants.iter().find(|one| match &one.key {
            VariantKey::Identifier { name } => *name == wanted,
            VariantKey::NumberLiteral { value } => *value == wanted,
        })
    };
    let plural = if chosen == "1" { "one" } else { "other" };
    named(chosen).or_else(|| named(plural)).or_else(|| variants.iter().find(|one| one.default))
}

/// The message of a key: a `&'static str` without arguments, a `String` with them.
///
/// `message!(FILES, "files-changed", count = files.len(), folder)`: a name alone stands for the variable of that name.
#[macro_export]
macro_rules! message {
    (@value $name:ident) => { $name };
    (@value $name:ident = $value:expr) => { $value };
    ($files:expr, $key:literal) => { $crate::plain_message($files, $key) };
    ($files:expr, $key:literal, $($name:ident $(= $value:expr)?),+ $(,)?) => {
        $crate::filled_message(
            $files,
            $key,
            &[$((stringify!($name), &$crate::message!(@value $name $(= $value)?) as &dyn ::std::fmt::Display)),+],
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    static FILES: [MessageFile; 2] = [
        MessageFile::new(
            "files",
            "files-none = No files.\nfiles-changed = { $count ->\n    [0] No file\n    [one] One file\n   *[other] { $count } \
             files\n } changed in { $folder }.\nfiles-odd = { \"  \" }{ \"{\" }two\n    lines\n",
            "files-none = 没有文件。\n",
        ),
        MessageFile::new("mode", "mode-meaning = { $mode ->\n    [plan] Read only\n   *[ask] Ask first\n }\n", ""),
    ];

    #[test]
    fn a_message_takes_its_arguments_by_name() {
        let folder = "src";
        let changed = |count: usize| message!(&FILES, "files-changed", folder, count);
        assert_eq!(changed(0), "No file changed in src.");
        assert_eq!(changed(1), "One file changed in src.");
        assert_eq!(changed(12), "12 files changed in src.");
    }

    #[test]
    fn a_message_without_arguments_is_borrowed() {
        let text: &'static str = message!(&FILES, "files-none");
        assert_eq!(text, "No files.");
        assert_eq!(message!(&FILES, "files-odd"), "  {two\nlines");
    }

    #[test]
    fn a_choice_falls_back_to_its_default() {
        assert_eq!(message!(&FILES, "mode-meaning", mode = "plan"), "Read only");
        assert_eq!(message!(&FILES, "mode-meaning", mode = "other than those"), "Ask first");
    }

    #[test]
    fn a_message_that_is_not_translated_is_english() {
        let plain = |key| FILES[0].get(Language::Chinese, key).map(|message| message.plain.as_str());
        assert_eq!(plain("files-none"), Some("没有文件。"));
        assert_eq!(plain("files-odd"), Some("  {two\nlines"));
        assert_eq!(plain("files-unknown"), None);
    }

    #[test]
    fn what_is_not_there_is_its_key() {
        assert_eq!(message!(&FILES, "files-unknown"), "files-unknown");
        assert_eq!(message!(&FILES, "elsewhere", count = 1), "elsewhere");
    }
}
