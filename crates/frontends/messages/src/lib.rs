//! User-visible text by key, stored in translatable Fluent files beside the front end that shows
//! it.
//!
//! A key names its file: `trust-question` is in `trust.ftl`. A file is parsed when one of its
//! messages is first shown. The supported parts of Fluent are text, `{ $name }`, `{ "literal" }`,
//! and a choice by an argument, `{ $count -> [one] … *[other] … }`: first by the argument's text,
//! then by its plural. An argument that selects a plural is a number, and is shown in groups of
//! three digits in every language. The process has one [`Language`], which its front end sets
//! ([`set_language`]); a message without a translation is shown in English. This crate must not
//! read files or the environment, and text for programs (JSON, events, the log) must not go through
//! it.
//!
//! Read first: [`message!`] (returns a message), [`MessageFile`], [`Language`].
//!
//! ```
//! use haft_messages::{MessageFile, message};
//!
//! const ENGLISH: &str = "files-found = { $count ->
//!     [one] One file
//!    *[other] { $count } files
//!  }.
//! ";
//! static FILES: [MessageFile; 1] = [MessageFile::new("files", ENGLISH, "")];
//!
//! assert_eq!(message!(&FILES, "files-found", count = 2), "2 files.");
//! ```

mod activity;
mod headline;
mod language;
mod phrases;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::sync::OnceLock;

use fluent_syntax::ast::{
    Entry, Expression, InlineExpression, Pattern, PatternElement, Variant, VariantKey,
};
use fluent_syntax::parser;

pub use activity::TaskActivity;
pub use headline::{CallHeadline, is_dialogue_tool};
pub use language::{Language, current_language, parse_yes_no, run_in_english, set_language};
pub use phrases::{Phrases, translate_error, translate_result};

/// The messages of one file name in every language. The keys of all messages begin with the file's
/// name.
#[derive(Debug)]
pub struct MessageFile {
    name: &'static str,
    english: TranslatedFile,
    chinese: TranslatedFile,
}

/// A message file in one language. It is parsed on first use.
#[derive(Debug)]
struct TranslatedFile {
    source: &'static str,
    messages: OnceLock<HashMap<Cow<'static, str>, ParsedMessage>>,
}

/// The name of an argument, and the value that replaces `$name` in a message.
pub type MessageArgument<'a> = (&'static str, &'a dyn Display);

#[derive(Debug)]
struct ParsedMessage {
    pattern: Pattern<&'static str>,
    /// The text of the message with no arguments filled in.
    plain: String,
    /// The names of the arguments whose number selects a plural form.
    numbers: Vec<&'static str>,
}

impl ParsedMessage {
    fn new(pattern: Pattern<&'static str>) -> Self {
        Self {
            plain: fill_pattern(&pattern, &[], &[]),
            numbers: find_plural_arguments(&pattern),
            pattern,
        }
    }
}

impl MessageFile {
    /// Creates the message file `NAME.ftl` from its English and its Chinese content.
    pub const fn new(name: &'static str, english: &'static str, chinese: &'static str) -> Self {
        Self {
            name,
            english: TranslatedFile::new(english),
            chinese: TranslatedFile::new(chinese),
        }
    }

    fn get(&self, language: Language, key: &str) -> Option<&ParsedMessage> {
        let translated = match language {
            Language::English => None,
            Language::Chinese => self.chinese.get(key),
        };
        translated.or_else(|| self.english.get(key))
    }
}

impl TranslatedFile {
    const fn new(source: &'static str) -> Self {
        Self {
            source,
            messages: OnceLock::new(),
        }
    }

    fn get(&self, key: &str) -> Option<&ParsedMessage> {
        let parsed = || {
            // Invalid messages are found by the tests of the crate that owns the file.
            let file = parser::parse_runtime(self.source).unwrap_or_else(|(file, _)| file);
            let mut messages = HashMap::new();
            for entry in file.body {
                let Entry::Message(message) = entry else {
                    continue;
                };
                let key = message.id.name;
                if let Some(pattern) = message.value {
                    messages.insert(key.into(), ParsedMessage::new(pattern));
                }
                for attribute in message.attributes {
                    let key = format!("{key}.{}", attribute.id.name);
                    messages.insert(key.into(), ParsedMessage::new(attribute.value));
                }
            }
            messages
        };
        self.messages.get_or_init(parsed).get(key)
    }
}

/// Returns the text with an upper-case first letter, for a phrase that stands as a sentence.
pub fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Like [`capitalize`], but returns a text unchanged that begins with a name or a path, such as
/// `haft` or `src/lib.rs`.
pub fn capitalize_sentence(text: &str) -> String {
    match text.split_once(' ') {
        Some((first, _))
            if first.bytes().all(|byte| byte.is_ascii_lowercase())
                && !["haft", "git"].contains(&first) =>
        {
            capitalize(text)
        }
        _ => text.to_owned(),
    }
}

/// Returns the message with this key, which takes no arguments. Returns the key itself if the
/// message is missing.
pub fn plain_message(files: &'static [MessageFile], key: &'static str) -> &'static str {
    find_message(files, key).map_or(key, |(message, _)| &message.plain)
}

/// Returns the message with this key in `language`, or `None` if the message does not exist. Unlike
/// [`plain_message`], accepts keys that are computed at run time. The key `key.name` selects the
/// attribute `name` of a message.
pub fn optional_message(
    file: &'static MessageFile,
    language: Language,
    key: &str,
) -> Option<&'static str> {
    file.get(language, key)
        .map(|message| message.plain.as_str())
}

/// Returns the message with this key, with its arguments filled in. Returns the key itself if the
/// message is missing.
pub fn filled_message(
    files: &'static [MessageFile],
    key: &'static str,
    arguments: &[MessageArgument<'_>],
) -> String {
    find_message(files, key).map_or_else(
        || key.to_owned(),
        |(message, numbers)| fill_pattern(&message.pattern, arguments, numbers),
    )
}

/// Returns a message in the current language, and the names of its numeric arguments. The names are
/// taken from the English message, because its plural forms show which arguments are numbers;
/// Chinese has no plural forms.
fn find_message(
    files: &'static [MessageFile],
    key: &str,
) -> Option<(&'static ParsedMessage, &'static [&'static str])> {
    let name = key.split('-').next()?;
    let file = files.iter().find(|file| file.name == name)?;
    Some((
        file.get(current_language(), key)?,
        file.english
            .get(key)
            .map_or(&[], |message| &message.numbers),
    ))
}

fn find_plural_arguments(pattern: &Pattern<&'static str>) -> Vec<&'static str> {
    let is_plural = |one: &Variant<&str>| matches!(one.key, VariantKey::Identifier { name: "one" });
    let chosen_by = pattern.elements.iter().filter_map(|element| match element {
        PatternElement::Placeable {
            expression:
                Expression::Select {
                    selector: InlineExpression::VariableReference { id },
                    variants,
                },
        } if variants.iter().any(is_plural) => Some(id.name),
        _ => None,
    });
    chosen_by.collect()
}

fn fill_pattern(
    pattern: &Pattern<&'static str>,
    arguments: &[MessageArgument<'_>],
    numbers: &[&str],
) -> String {
    let mut text = String::new();
    for element in &pattern.elements {
        match element {
            PatternElement::TextElement { value } => text.push_str(value),
            PatternElement::Placeable {
                expression: Expression::Inline(inline),
            } => {
                let value = format_value(inline, arguments);
                let is_number = matches!(inline, InlineExpression::VariableReference { id } if numbers.contains(&id.name));
                text.push_str(&if is_number {
                    group_digits(&value)
                } else {
                    value
                });
            }
            PatternElement::Placeable {
                expression: Expression::Select { selector, variants },
            } => {
                let chosen = format_value(selector, arguments);
                text.push_str(
                    &select_variant(variants, &chosen)
                        .map_or(chosen, |one| fill_pattern(&one.value, arguments, numbers)),
                );
            }
        }
    }
    text
}

/// Separates the digits of a whole number into groups of three, as in `1,234,567`. Returns any
/// other text unchanged.
fn group_digits(value: &str) -> String {
    if value.len() < 4 || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.to_owned();
    }
    let mut text = String::new();
    for (at, digit) in value.chars().enumerate() {
        if at > 0 && (value.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn format_value(
    expression: &InlineExpression<&'static str>,
    arguments: &[MessageArgument<'_>],
) -> String {
    let mut text = String::new();
    match expression {
        InlineExpression::StringLiteral { value } | InlineExpression::NumberLiteral { value } => {
            text.push_str(value);
        }
        InlineExpression::VariableReference { id } => {
            if let Some((_, value)) = arguments.iter().find(|(name, _)| *name == id.name) {
                // Writing to a String cannot fail.
                let _ = write!(text, "{value}");
                // Errors of libraries have no key, so they are translated by comparing their text.
                if ["cause", "error", "failure", "problem", "reason", "why"].contains(&id.name) {
                    text = translate_error(&text).into_owned();
                }
            }
        }
        _ => {}
    }
    text
}

fn select_variant<'a>(
    variants: &'a [Variant<&'static str>],
    chosen: &str,
) -> Option<&'a Variant<&'static str>> {
    let named = |wanted: &str| {
        variants.iter().find(|one| match &one.key {
            VariantKey::Identifier { name } => *name == wanted,
            VariantKey::NumberLiteral { value } => *value == wanted,
        })
    };
    let plural = if chosen == "1" { "one" } else { "other" };
    named(chosen)
        .or_else(|| named(plural))
        .or_else(|| variants.iter().find(|one| one.default))
}

/// Returns the message with this key: a `&'static str` if no arguments are given, else a `String`.
///
/// In `message!(FILES, "files-changed", count = files.len(), folder)`, a name alone passes the
/// variable of that name.
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
            "files-none = 没有文件。\nfiles-changed = { $folder } 中有 { $count } 个文件改动\n",
        ),
        MessageFile::new(
            "mode",
            "mode-meaning = { $mode ->\n    [plan] Read only\n   *[ask] Ask first\n }\n",
            "",
        ),
    ];

    #[test]
    fn capitalize_sentence_keeps_names() {
        let texts = [
            "all edits failed",
            "haft is here",
            "src/lib.rs is gone",
            "密钥 x",
            "",
        ];
        assert_eq!(
            texts.map(capitalize_sentence),
            [
                "All edits failed",
                "haft is here",
                "src/lib.rs is gone",
                "密钥 x",
                ""
            ]
        );
    }

    #[test]
    fn message_attributes_are_found_by_dotted_key() {
        static HELP: MessageFile = MessageFile::new(
            "help",
            "help-run = Runs a task.\n    .model =\n        The model.\n\n        As `provider/model`.\nhelp-bare =\n    .x = X\n",
            "",
        );
        assert_eq!(
            optional_message(&HELP, Language::English, "help-run"),
            Some("Runs a task.")
        );
        assert_eq!(
            optional_message(&HELP, Language::English, "help-run.model"),
            Some("The model.\n\nAs `provider/model`.")
        );
        assert_eq!(
            optional_message(&HELP, Language::English, "help-bare.x"),
            Some("X")
        );
        assert_eq!(
            optional_message(&HELP, Language::English, "help-bare"),
            None
        );
        assert_eq!(
            optional_message(&HELP, Language::English, "help-run.agent"),
            None
        );
    }

    #[test]
    fn message_takes_arguments_by_name() {
        let folder = "src";
        let changed = |count: usize| message!(&FILES, "files-changed", folder, count);
        assert_eq!(changed(0), "No file changed in src.");
        assert_eq!(changed(1), "One file changed in src.");
        assert_eq!(changed(12), "12 files changed in src.");
        assert_eq!(changed(1_234_567), "1,234,567 files changed in src.");
        let year = |folder: u32| message!(&FILES, "files-changed", folder, count = "5,000");
        assert_eq!(
            year(2026),
            "5,000 files changed in 2026.",
            "only what is counted"
        );
    }

    #[test]
    fn fill_pattern_groups_digits_without_a_plural_form() {
        let translated = FILES[0].get(Language::Chinese, "files-changed").unwrap();
        let numbers = &FILES[0]
            .get(Language::English, "files-changed")
            .unwrap()
            .numbers;
        let text = fill_pattern(
            &translated.pattern,
            &[("count", &5_000), ("folder", &2026)],
            numbers,
        );
        assert_eq!(text, "2026 中有 5,000 个文件改动");
    }

    #[test]
    fn message_without_arguments_is_borrowed() {
        let text: &'static str = message!(&FILES, "files-none");
        assert_eq!(text, "No files.");
        assert_eq!(message!(&FILES, "files-odd"), "  {two\nlines");
    }

    #[test]
    fn message_choice_falls_back_to_its_default() {
        assert_eq!(message!(&FILES, "mode-meaning", mode = "plan"), "Read only");
        assert_eq!(
            message!(&FILES, "mode-meaning", mode = "other than those"),
            "Ask first"
        );
    }

    #[test]
    fn message_without_translation_is_english() {
        let plain = |key| {
            FILES[0]
                .get(Language::Chinese, key)
                .map(|message| message.plain.as_str())
        };
        assert_eq!(plain("files-none"), Some("没有文件。"));
        assert_eq!(plain("files-odd"), Some("  {two\nlines"));
        assert_eq!(plain("files-unknown"), None);
    }

    #[test]
    fn message_that_is_unknown_returns_its_key() {
        assert_eq!(message!(&FILES, "files-unknown"), "files-unknown");
        assert_eq!(message!(&FILES, "elsewhere", count = 1), "elsewhere");
    }
}
