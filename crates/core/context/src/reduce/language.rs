//! Detects the language of the user's own prose from its script.
//!
//! Pasted text (code in fences, logs, output) is mostly English, whatever language the user speaks.
//! Prose is usually at the beginning or end of a message; the text between may be anything.

use std::sync::Arc;

use haft_types::Entry;

use crate::build::mentions::user_text;
use crate::build::rounds::is_from_user;

/// A script, or a group of scripts, that letters are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WritingScript {
    Latin,
    Han,
    Kana,
    Hangul,
    Cyrillic,
    Other,
}

const SCRIPTS: [WritingScript; 6] = {
    use WritingScript::{Cyrillic, Han, Hangul, Kana, Latin, Other};
    [Latin, Han, Kana, Hangul, Cyrillic, Other]
};

impl WritingScript {
    fn from_char(c: char) -> Option<Self> {
        if !c.is_alphabetic() {
            return None;
        }
        Some(match c {
            '\u{0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Self::Latin,
            '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' => {
                Self::Kana
            }
            '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => {
                Self::Han
            }
            '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7af}' => {
                Self::Hangul
            }
            '\u{400}'..='\u{52f}' => Self::Cyrillic,
            _ => Self::Other,
        })
    }

    /// Returns the weight of one letter of this script. In some scripts, a character stands for a
    /// whole syllable or word.
    fn letter_weight(self) -> usize {
        match self {
            Self::Han => 3,
            Self::Kana | Self::Hangul => 2,
            Self::Latin | Self::Cyrillic | Self::Other => 1,
        }
    }
}

/// The number of letters of each script in a text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScriptCounts([usize; SCRIPTS.len()]);

impl ScriptCounts {
    pub(crate) fn from_text(text: &str) -> Self {
        let mut counts = Self::default();
        for script in text.chars().filter_map(WritingScript::from_char) {
            counts.0[script as usize] += 1;
        }
        counts
    }

    pub(crate) fn count_letters(&self, script: WritingScript) -> usize {
        self.0[script as usize]
    }

    /// Returns the script that carries most of the text; Latin if there are no letters.
    pub(crate) fn dominant_script(&self) -> WritingScript {
        let weight = |script: &WritingScript| self.count_letters(*script) * script.letter_weight();
        let most = SCRIPTS
            .into_iter()
            .rev()
            .max_by_key(weight)
            .unwrap_or(WritingScript::Latin);
        // Japanese uses both scripts; the kana distinguish it from Chinese.
        let has_kana =
            5 * self.count_letters(WritingScript::Kana) >= self.count_letters(WritingScript::Han);
        if most == WritingScript::Han && has_kana {
            WritingScript::Kana
        } else {
            most
        }
    }
}

/// Returns the name of the user's language if its script determines it; `None` for languages in
/// Latin script.
pub(crate) fn detect_user_language<'a>(
    messages: impl Iterator<Item = &'a Arc<Entry>>,
) -> Option<&'static str> {
    let mut votes = [0_usize; SCRIPTS.len()];
    for entry in messages.filter(|entry| is_from_user(&entry.message)) {
        if let Some(script) = detect_prose_script(user_text(&entry.message.joined_text())) {
            votes[script as usize] += 1;
        }
    }
    let most = SCRIPTS
        .into_iter()
        .rev()
        .max_by_key(|script| votes[*script as usize])?;
    match most {
        WritingScript::Han => Some("Chinese"),
        WritingScript::Kana => Some("Japanese"),
        WritingScript::Hangul => Some("Korean"),
        WritingScript::Cyrillic => Some("Russian, or what else of Cyrillic script the user writes"),
        WritingScript::Latin | WritingScript::Other => None,
    }
}

/// Returns the script of the first and last line of a message outside code fences. If the two lines
/// differ, returns the script that is not Latin, because pasted text is mostly Latin.
fn detect_prose_script(text: &str) -> Option<WritingScript> {
    let mut fenced = false;
    let lines = text.lines().map(str::trim).filter(|line| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        !fence && !fenced && line.chars().any(char::is_alphabetic)
    });
    let lines: Vec<_> = lines.collect();
    let ends =
        [lines.first()?, lines.last()?].map(|line| ScriptCounts::from_text(line).dominant_script());
    Some(
        ends.into_iter()
            .find(|script| *script != WritingScript::Latin)
            .unwrap_or(WritingScript::Latin),
    )
}

#[cfg(test)]
mod tests {
    use haft_types::Role;

    use super::*;
    use crate::testing::text;

    fn language(prompts: &[&str]) -> Option<&'static str> {
        let messages: Vec<_> = prompts
            .iter()
            .enumerate()
            .map(|(at, prompt)| text(at, Role::User, prompt))
            .collect();
        detect_user_language(messages.iter())
    }

    #[test]
    fn user_language_ignores_pasted_text() {
        let log =
            "error[E0425]: cannot find value `x` in this scope\n  --> src/main.rs:2:5\n".repeat(40);
        assert_eq!(
            language(&[&format!("请修复这个错误：\n{log}")]),
            Some("Chinese")
        );
        assert_eq!(
            language(&[&format!("{log}\n这是什么问题？")]),
            Some("Chinese")
        );
        assert_eq!(
            language(&[&format!("このエラーを直してください\n{log}")]),
            Some("Japanese")
        );
        assert_eq!(
            language(&[&format!("이 오류를 고쳐 주세요\n{log}")]),
            Some("Korean")
        );
        assert!(
            language(&[&format!("Исправь ошибку:\n```\n{log}```")])
                .unwrap()
                .starts_with("Russian")
        );
    }

    #[test]
    fn user_language_ignores_a_few_foreign_words() {
        assert_eq!(
            language(&["Translate the message 你好 into English, please, and fix the tests."]),
            None
        );
        assert_eq!(language(&["Fix it.", "And the docs.", "谢谢"]), None);
        assert_eq!(language(&[]), None);
    }
}
