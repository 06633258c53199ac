//! Detects the language of the user's own prose from its script.
//!
//! Pasted text (code in fences, logs, output) is mostly English, whatever language the user speaks.
//! Prose is usually at the beginning or end of a message; the text between may be anything.

use std::sync::Arc;

use haft_types::Entry;

use crate::build::input::own_words;
use crate::build::rounds::is_user_speech;

/// The script that a letter belongs to.
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
    fn of(c: char) -> Option<Self> {
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

    /// Returns the weight of one letter. A character of some scripts carries as much meaning as a
    /// syllable or a word of others.
    fn weight(self) -> usize {
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
    pub(crate) fn of(text: &str) -> Self {
        let mut counts = Self::default();
        for script in text.chars().filter_map(WritingScript::of) {
            counts.0[script as usize] += 1;
        }
        counts
    }

    pub(crate) fn letters(&self, script: WritingScript) -> usize {
        self.0[script as usize]
    }

    /// Returns the script that carries most of the text; Latin if there are no letters.
    pub(crate) fn dominant(&self) -> WritingScript {
        let weight = |script: &WritingScript| self.letters(*script) * script.weight();
        let most = SCRIPTS
            .into_iter()
            .rev()
            .max_by_key(weight)
            .unwrap_or(WritingScript::Latin);
        // Japanese uses both scripts; the kana distinguish it from Chinese.
        let has_kana = 5 * self.letters(WritingScript::Kana) >= self.letters(WritingScript::Han);
        if most == WritingScript::Han && has_kana {
            WritingScript::Kana
        } else {
            most
        }
    }
}

/// Returns the name of the user's language, if the script reveals it.
pub(crate) fn user_language<'a>(
    messages: impl Iterator<Item = &'a Arc<Entry>>,
) -> Option<&'static str> {
    let mut votes = [0_usize; SCRIPTS.len()];
    for entry in messages.filter(|entry| is_user_speech(&entry.message)) {
        if let Some(script) = prose_script(own_words(&entry.message.joined_text())) {
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

/// Returns the script of the first and last line of a message. If they differ, returns the one that
/// is not Latin, because pasted text is mostly Latin.
fn prose_script(text: &str) -> Option<WritingScript> {
    let mut fenced = false;
    let lines = text.lines().map(str::trim).filter(|line| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        !fence && !fenced && line.chars().any(char::is_alphabetic)
    });
    let lines: Vec<_> = lines.collect();
    let ends = [lines.first()?, lines.last()?].map(|line| ScriptCounts::of(line).dominant());
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
        user_language(messages.iter())
    }

    #[test]
    fn what_is_pasted_does_not_decide() {
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
    fn a_few_foreign_words_do_not_decide() {
        assert_eq!(
            language(&["Translate the message 你好 into English, please, and fix the tests."]),
            None
        );
        assert_eq!(language(&["Fix it.", "And the docs.", "谢谢"]), None);
        assert_eq!(language(&[]), None);
    }
}
