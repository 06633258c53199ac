//! Translates texts that arrive without a key, such as errors of libraries and of the command line
//! parser.
//!
//! A Fluent file has these texts in English, by key. A text is compared with the English messages;
//! the message of the same key in the other language replaces it. In English, the message of the
//! same key in `reworded.ftl` replaces it, if there is one: many of these texts are also read by a
//! model, and people should read what concerns them, in their words. `{ $a }` in the English message
//! matches anything. In the translation, `{ $a }` inserts the matched text, `{ TRANSLATE($a) }`
//! translates it if possible, and `{ TRANSLATED($a) }` makes the whole message match only if it can
//! be translated. A final period may be present or not. If a text has several sentences, as the
//! reasons of a verdict do, each is translated; unknown ones stay as they are, so that nothing is
//! lost.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement};
use fluent_syntax::parser;

use crate::language::is_english_forced;
use crate::{Language, MessageFile, current_language};

/// A set of English texts with their Chinese translations.
#[derive(Debug)]
pub struct Phrases {
    /// The language of the translations.
    language: Language,
    /// Texts without variables, each with its translation.
    whole: HashMap<String, String>,
    /// Texts with variables, in the order in which they are tried: those with more literal text
    /// first, those that start with a variable last.
    forms: Vec<PhraseForm>,
}

/// An English text with variables, and its translation.
#[derive(Debug)]
struct PhraseForm {
    /// The literal pieces of the text: those before, between, and after the variables.
    literals: Vec<String>,
    translation: Vec<PhrasePiece>,
}

/// A piece of a translation: literal text or the value of a variable.
#[derive(Debug)]
enum PhrasePiece {
    Text(String),
    /// The value of a variable, given by the variable's index and the treatment of its value.
    Value(usize, Nested),
}

/// The treatment of a value that is inserted into a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nested {
    /// The value is inserted unchanged.
    Verbatim,
    /// The value is translated if possible.
    Translate,
    /// The value is translated. If that is impossible, the whole text counts as unknown.
    Translated,
}

impl Phrases {
    /// Reads all English texts of a message file, with their translations.
    pub fn new(file: &MessageFile) -> Self {
        Self::with_translations(Language::Chinese, file.english.source, file.chinese.source)
    }

    fn with_translations(
        language: Language,
        english: &'static str,
        translated: &'static str,
    ) -> Self {
        let mut translations: HashMap<_, _> = parse_messages(translated).into_iter().collect();
        let mut whole = HashMap::new();
        let mut forms = Vec::new();
        for (key, english) in parse_messages(english) {
            let Some(translated) = translations.remove(key) else {
                continue;
            };
            let (mut literals, variables) = split_at_variables(&english);
            let translation = parse_translation(&translated, &variables);
            if variables.is_empty() {
                let text = translation.into_iter().map(|piece| match piece {
                    PhrasePiece::Text(text) => text,
                    PhrasePiece::Value(..) => String::new(),
                });
                whole.insert(literals.swap_remove(0), text.collect());
            } else {
                forms.push(PhraseForm {
                    literals,
                    translation,
                });
            }
        }
        forms.sort_by_key(|form| {
            let starts_with_variable = form.literals.first().is_some_and(String::is_empty);
            let length: usize = form.literals.iter().map(String::len).sum();
            (starts_with_variable, Reverse(length))
        });
        Self {
            language,
            whole,
            forms,
        }
    }

    /// Returns the translation of one text, or `None` if the text is unknown.
    pub fn translate(&self, english: &str) -> Option<String> {
        // A final period is ignored, but an ellipsis of three periods is part of the text.
        let stem = english
            .strip_suffix('.')
            .filter(|stem| !stem.ends_with('.'))
            .unwrap_or(english);
        let by_form = || {
            self.forms.iter().find_map(|form| {
                self.fill_translation(&form.translation, &form.match_values(stem)?)
            })
        };
        if english.is_empty() {
            return Some(String::new());
        }
        let translation = self.whole.get(stem).cloned().or_else(by_form)?;
        let period = match self.language {
            Language::English => ".",
            Language::Chinese => "。",
        };
        let is_ended = translation.ends_with(['.', '!', '?', '。', '！', '？']);
        let end = if stem == english || translation.is_empty() || is_ended {
            ""
        } else {
            period
        };
        Some(translation + end)
    }

    /// Fills the values into a translation. Returns `None` if a value that must be translated
    /// cannot be translated.
    fn fill_translation(&self, translation: &[PhrasePiece], values: &[&str]) -> Option<String> {
        let mut text = String::new();
        for (at, piece) in translation.iter().enumerate() {
            let (index, nested) = match piece {
                PhrasePiece::Text(literal) => {
                    text.push_str(literal);
                    continue;
                }
                PhrasePiece::Value(index, nested) => (*index, *nested),
            };
            let value = *values.get(index)?;
            let translated = match nested {
                Nested::Verbatim => None,
                Nested::Translate | Nested::Translated => self.translate_value(value),
            };
            match translated {
                Some(translated) => text.push_str(&translated),
                None if nested == Nested::Translated => return None,
                None if is_token_count(translation.get(at + 1)) => {
                    text.push_str(&crate::group_digits(value));
                }
                None => text.push_str(value),
            }
        }
        Some(text)
    }

    /// Translates the value of a variable with these phrases, or else with the phrases of
    /// libraries.
    fn translate_value(&self, value: &str) -> Option<String> {
        let value = value.trim_start();
        self.translate_sentences(value).or_else(|| {
            let library = library_phrases(self.language);
            if std::ptr::eq(self, library) {
                None
            } else {
                library.translate_sentences(value)
            }
        })
    }

    /// Translates a text of one or more sentences. Sentences without a translation stay unchanged.
    /// Returns `None` if no sentence has a translation.
    fn translate_sentences(&self, english: &str) -> Option<String> {
        let parts: Vec<_> = split_sentences(english)
            .map(|part| (part, self.translate(part)))
            .collect();
        let known = parts.iter().filter(|(_, own)| own.is_some()).count();
        let separator = match self.language {
            Language::English => SEPARATOR,
            Language::Chinese => "；",
        };
        let joined = || {
            let mut sentences: Vec<_> = parts
                .iter()
                .map(|(part, own)| own.as_deref().unwrap_or(part))
                .filter(|sentence| !sentence.is_empty())
                .collect();
            // Two reasons may have one wording for people.
            sentences.dedup();
            sentences.join(separator)
        };
        let whole = if known == parts.len() {
            None
        } else {
            self.translate(english)
        };
        whole.or_else(|| (known > 0).then(joined))
    }
}

impl PhraseForm {
    /// Returns the value of each variable in `text`, or `None` if the text does not match.
    fn match_values<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let (first, rest_literals) = self.literals.split_first()?;
        let (last, between) = rest_literals.split_last()?;
        let mut rest = text.strip_prefix(first.as_str())?;
        let mut values = Vec::with_capacity(rest_literals.len());
        for literal in between {
            let (value, behind) = rest.split_once(literal.as_str())?;
            values.push(value);
            rest = behind;
        }
        values.push(rest.strip_suffix(last.as_str())?);
        Some(values)
    }
}

/// Returns true if the text after a value says that the value is a number of tokens.
fn is_token_count(next: Option<&PhrasePiece>) -> bool {
    match next {
        Some(PhrasePiece::Text(text)) => text.starts_with(" token"),
        Some(PhrasePiece::Value(..)) | None => false,
    }
}

/// Parses a Fluent file, and returns the key and the pattern of each message, in file order.
fn parse_messages(source: &'static str) -> Vec<(&'static str, Pattern<&'static str>)> {
    let file = parser::parse_runtime(source).unwrap_or_else(|(file, _)| file);
    let messages = file.body.into_iter().filter_map(|entry| match entry {
        Entry::Message(message) => Some((message.id.name, message.value?)),
        _ => None,
    });
    messages.collect()
}

/// Splits an English message into its literal texts and the names of the variables between them.
fn split_at_variables(pattern: &Pattern<&'static str>) -> (Vec<String>, Vec<&'static str>) {
    let mut literals = vec![String::new()];
    let mut variables = Vec::new();
    for element in &pattern.elements {
        if let PatternElement::Placeable {
            expression: Expression::Inline(InlineExpression::VariableReference { id }),
        } = element
        {
            variables.push(id.name);
            literals.push(String::new());
        } else if let Some(literal) = literals.last_mut() {
            literal.push_str(literal_text(element));
        }
    }
    (literals, variables)
}

/// Returns the pieces of a translation. `variables` contains the names of the variables in the
/// English message, in order.
fn parse_translation(pattern: &Pattern<&'static str>, variables: &[&str]) -> Vec<PhrasePiece> {
    let index = |name: &str| variables.iter().position(|known| *known == name);
    let parts = pattern.elements.iter().map(|element| {
        let PatternElement::Placeable {
            expression: Expression::Inline(inline),
        } = element
        else {
            return PhrasePiece::Text(literal_text(element).to_owned());
        };
        let (name, nested) = match inline {
            InlineExpression::VariableReference { id } => (Some(id.name), Nested::Verbatim),
            InlineExpression::FunctionReference { id, arguments } => {
                let name = arguments.positional.first().and_then(|value| match value {
                    InlineExpression::VariableReference { id } => Some(id.name),
                    _ => None,
                });
                let nested = match id.name {
                    "TRANSLATED" => Nested::Translated,
                    _ => Nested::Translate,
                };
                (name, nested)
            }
            _ => (None, Nested::Verbatim),
        };
        match name.and_then(index) {
            Some(index) => PhrasePiece::Value(index, nested),
            None => PhrasePiece::Text(literal_text(element).to_owned()),
        }
    });
    parts.collect()
}

/// Returns the text of an element, or an empty string if it is neither text nor a string literal.
fn literal_text(element: &PatternElement<&'static str>) -> &'static str {
    match element {
        PatternElement::TextElement { value }
        | PatternElement::Placeable {
            expression: Expression::Inline(InlineExpression::StringLiteral { value }),
        } => value,
        PatternElement::Placeable { .. } => "",
    }
}

/// The separator between the clauses of a message, which are translated one by one.
const SEPARATOR: &str = "; ";

/// Splits a text into sentences. A separator between backquotes is part of a command and does not
/// end a sentence.
fn split_sentences(english: &str) -> impl Iterator<Item = &str> {
    let is_end = |at: &usize| english[..*at].matches('`').count().is_multiple_of(2);
    let ends: Vec<_> = english
        .match_indices(SEPARATOR)
        .map(|(at, _)| at)
        .filter(is_end)
        .collect();
    let starts =
        std::iter::once(0).chain(ends.clone().into_iter().map(|end| end + SEPARATOR.len()));
    starts
        .zip(ends.into_iter().chain([english.len()]))
        .map(|(start, end)| &english[start..end])
}

/// The translations of error texts that come from haft's own libraries, the operating system, or
/// dependencies.
static LIBRARY: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&MessageFile::new(
        "library",
        include_str!("../messages/en/library.ftl"),
        include_str!("../messages/zh-CN/library.ftl"),
    ))
});

/// The wording of such texts for people who read English. Texts that are not listed are worded for
/// people already.
static REWORDED: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::with_translations(
        Language::English,
        include_str!("../messages/en/library.ftl"),
        include_str!("../messages/en/reworded.ftl"),
    )
});

fn library_phrases(language: Language) -> &'static Phrases {
    match language {
        Language::English => &REWORDED,
        Language::Chinese => &LIBRARY,
    }
}

/// Translates an error message of a library to the language of this process. A message without a
/// translation is returned unchanged, and so is every message within
/// [`run_in_english`](crate::run_in_english), because a program or a model reads it.
pub fn translate_error(english: &str) -> Cow<'_, str> {
    if english.is_empty() || is_english_forced() {
        return english.into();
    }
    library_phrases(current_language())
        .translate_sentences(english)
        .map_or_else(|| english.into(), Cow::Owned)
}

/// Translates the result of a failed call or of a command to the language of this process. After a
/// heading such as `--- stdout ---`, the text is the output of a program, of which only the lines
/// in brackets are translated, because haft wrote them.
pub fn translate_result(english: &str) -> Cow<'_, str> {
    let mut is_output = false;
    let lines = english.lines().map(|line| {
        is_output |= line.starts_with("--- ");
        if is_output && !line.starts_with('[') {
            line.into()
        } else {
            translate_error(line)
        }
    });
    lines.collect::<Vec<_>>().join("\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translate_sentences_translates_each_reason() {
        let known = "no rule allows `a; b`; `sh` is a shell that reads commands from its input; something new: `c; d";
        assert_eq!(split_sentences(known).count(), 3);
        assert_eq!(
            LIBRARY.translate_sentences(known).as_deref(),
            Some("没有规则涵盖它；`sh` 是一个 shell，命令通过管道传给它；something new: `c; d")
        );
        assert_eq!(
            LIBRARY
                .translate_sentences("no rule allows `a`; no rule allows `b`")
                .as_deref(),
            Some("没有规则涵盖它")
        );
        assert_eq!(LIBRARY.translate_sentences("something; new"), None);
    }

    #[test]
    fn library_translations_use_only_known_variables() {
        let english = include_str!("../messages/en/library.ftl");
        let chinese = include_str!("../messages/zh-CN/library.ftl");
        for source in [english, chinese] {
            assert!(parser::parse_runtime(source).is_ok());
        }
        let mut translations: HashMap<_, _> = parse_messages(chinese).into_iter().collect();
        for (key, pattern) in parse_messages(english) {
            let (_, variables) = split_at_variables(&pattern);
            let translation = translations.remove(key).unwrap_or_else(|| panic!("{key}"));
            // A plural ending of the English text may have no counterpart in the translation.
            let is_unknown =
                |piece: &PhrasePiece| matches!(piece, PhrasePiece::Text(text) if text.is_empty());
            assert!(
                !parse_translation(&translation, &variables)
                    .iter()
                    .any(is_unknown),
                "{key} has a variable that the English text lacks"
            );
        }
        assert!(translations.is_empty(), "only in Chinese: {translations:?}");
    }

    #[test]
    fn reworded_texts_are_listed_with_their_variables() {
        let english: HashMap<_, _> = parse_messages(include_str!("../messages/en/library.ftl"))
            .into_iter()
            .collect();
        let reworded = include_str!("../messages/en/reworded.ftl");
        assert!(parser::parse_runtime(reworded).is_ok());
        for (key, text) in parse_messages(reworded) {
            let source = english.get(key).unwrap_or_else(|| panic!("{key}"));
            let (_, variables) = split_at_variables(source);
            let is_unknown =
                |piece: &PhrasePiece| matches!(piece, PhrasePiece::Text(text) if text.is_empty());
            assert!(
                !parse_translation(&text, &variables).iter().any(is_unknown),
                "{key} has a variable that the text lacks"
            );
        }
    }

    #[test]
    fn reworded_texts_hide_what_is_said_to_the_model() {
        for (english, wording) in [
            (
                "The user did not allow this call of `execute_command`. They said: use make test. \
                 Find another way, or ask what they want.",
                "Not allowed: use make test.",
            ),
            (
                "no rule allows `a; b`; no rule allows `c`",
                "not covered by any rule",
            ),
            (
                "the model itself asks for the user's approval; no rule allows `make`",
                "the model flagged this as risky; not covered by any rule",
            ),
            ("something new", "something new"),
        ] {
            assert_eq!(translate_error(english), wording);
        }
        let said = "no rule allows `make`";
        assert_eq!(crate::run_in_english(|| translate_error(said)), said);
    }

    /// Errors and results are written for a model, which is told how to go on. People read the same
    /// errors, and must not be addressed as the model.
    #[test]
    fn texts_for_people_have_no_instructions_for_the_model() {
        const ENGLISH: [&str; 8] = [
            "the user ",
            "The user ",
            "the user's",
            "end the call again",
            "copy the lines",
            "ind another way",
            "say what you",
            "end it whole",
        ];
        const CHINESE: [&str; 5] = ["询问用户", "向用户", "照抄", "再调用", "用户可以"];
        let reworded: HashMap<_, _> = parse_messages(include_str!("../messages/en/reworded.ftl"))
            .into_iter()
            .collect();
        let english = parse_messages(include_str!("../messages/en/library.ftl"))
            .into_iter()
            .map(|(key, text)| (key, reworded.get(key).cloned().unwrap_or(text)));
        let chinese = parse_messages(include_str!("../messages/zh-CN/library.ftl"));
        let texts = english
            .map(|text| (ENGLISH.as_slice(), text))
            .chain(chinese.into_iter().map(|text| (CHINESE.as_slice(), text)));
        let found: Vec<_> = texts
            .filter_map(|(instructions, (key, pattern))| {
                let text = pattern.elements.iter().map(literal_text);
                let text = text.collect::<Vec<_>>().join("…");
                instructions
                    .iter()
                    .any(|instruction| text.contains(instruction))
                    .then(|| format!("{key}: {text}"))
            })
            .collect();
        assert_eq!(found, [] as [String; 0]);
    }

    /// Regression: trying every form inside every other one would take exponential time.
    #[test]
    fn translate_handles_long_chains_of_errors() {
        for part in [
            "cannot read `a`: ",
            "x: ",
            "a; ",
            "`a` (b; c), ",
            "model a: window b, ",
        ] {
            let chain = part.repeat(200) + "at last";
            assert!(
                LIBRARY
                    .translate_sentences(&chain)
                    .is_none_or(|told| told.contains("at last")),
                "{part}"
            );
        }
    }

    #[test]
    fn translate_covers_context_and_task_notices() {
        for (english, chinese) in [
            (
                "old results were cleared: 1200 tokens less are sent",
                "已清除旧的结果：少发送 1,200 token",
            ),
            (
                "Archiving 3 older rounds (41200 tokens; ≈9,000 tokens, $0.0200 to write again)…",
                "正在归档 3 个较早的轮次（41,200 token；需重新发送 ≈9,000 token（$0.0200））…",
            ),
            (
                "Archiving 1 older step (900 tokens)…",
                "正在归档 1 个较早的步骤（900 token）…",
            ),
            (
                "3 older rounds are archived behind a summary.",
                "3 个较早的轮次已归档为摘要。",
            ),
            (
                "2 older rounds could not be archived (no summary within 120 s). Only recent history is sent, and what \
                 must be kept of the rest, word for word; nothing is lost.",
                "2 个较早的轮次没能归档（120 秒内没有得到摘要）。只发送最近的历史，其余部分中必须保留的内容按原文发送；\
                 没有丢失任何内容。",
            ),
            (
                "the cache is cold: ≈41,200 tokens, $0.1545 to write again",
                "缓存已过期：需重新发送 ≈41,200 token（$0.1545）",
            ),
            (
                "t1 (make (all)) failed: exit code 2 after 1 min 3 s.",
                "t1（make (all)）失败：退出码 2，用时 1 min 3 s。",
            ),
            (
                "An interrupted change of 2 files (`a`, `b`) was rolled back: everything is as it was before.",
                "已回滚一次中断的修改，涉及 2 个文件（`a`, `b`）：全部恢复原样。",
            ),
            (
                "there is no MCP server `x`; there is only `y`",
                "没有 MCP 服务器 `x`；只有 `y`",
            ),
            ("Exit code 2. No output.", "退出码 2。没有输出。"),
            (
                "cannot run the program: `/tmp/a` is hidden by the sandbox, in which `/tmp` is a private folder; move it to \
                 another folder, or add that path to `[sandbox] readable`",
                "无法运行程序：`/tmp/a` 被沙箱隐藏：沙箱内的 `/tmp` 是私有目录；请把它移到其他目录，或把该路径加入 `[sandbox] readable`",
            ),
            (
                "`old_text` is not in `a.rs`; nothing was changed. Nothing similar was found: read the file and \
                 copy the lines from there.",
                "`a.rs` 中没有要替换的文本；没有修改任何内容。",
            ),
            (
                "`x` needs the user's permission (no rule allows `a`; no rule allows `b`), and nobody can be asked in this run \
                 (permission mode `ask`). The user can allow it with `haft permissions add \"x\"`, or \
                 `--permission-mode auto` (all commands, inside the sandbox).",
                "`x` 需要你的许可（没有规则涵盖它），而本次运行无法询问（权限模式 `ask`）。可以这样允许：\
                 `haft permissions add \"x\"`，或 `--permission-mode auto`（沙箱内的所有命令）。",
            ),
            (
                "`x` is not permitted: `x` runs commands, and this run may only read (permission mode `plan`). The user can \
                 allow it with `--allow \"x\" --permission-mode ask`, or `--permission-mode auto` (all commands, inside the \
                 sandbox). Do not try to get around it; say what you would have done.",
                "不允许：`x` 会运行命令，而本次运行只能读取（权限模式 `plan`）。可以这样允许：`--allow \"x\" \
                 --permission-mode ask`，或 `--permission-mode auto`（沙箱内的所有命令）。",
            ),
        ] {
            assert_eq!(
                LIBRARY.translate_sentences(english).as_deref(),
                Some(chinese)
            );
        }
    }
}
