//! Stores the language of this process's messages, and parses yes-or-no answers in every language.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// A language in which messages can be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English, the default. Every message exists in English.
    #[default]
    English,
    /// Chinese, in simplified characters.
    Chinese,
}

impl Language {
    /// Returns the language tag that pages and the configuration use, such as `en`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh-CN",
        }
    }

    /// Returns the language for a locale such as `zh_CN.UTF-8`, or English if there are no messages
    /// in the locale's language. Traditional Chinese maps to simplified Chinese, the closest
    /// language available.
    pub fn from_locale(locale: &str) -> Self {
        let language = locale
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default();
        if language.eq_ignore_ascii_case("zh") {
            Self::Chinese
        } else {
            Self::English
        }
    }
}

static IS_CHINESE: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_ENGLISH_FORCED: Cell<bool> = const { Cell::new(false) };
}

/// Sets the language in which this process shows all messages.
pub fn set_language(language: Language) {
    IS_CHINESE.store(language == Language::Chinese, Ordering::Relaxed);
}

/// Returns the language in which messages are currently shown. Always English within
/// [`run_in_english`].
pub fn current_language() -> Language {
    if IS_CHINESE.load(Ordering::Relaxed) && !IS_ENGLISH_FORCED.get() {
        Language::Chinese
    } else {
        Language::English
    }
}

/// Returns true within [`run_in_english`].
pub(crate) fn is_english_forced() -> bool {
    IS_ENGLISH_FORCED.get()
}

/// Calls `word` with English as the language of messages. Used for texts that are read by a model
/// or a program.
pub fn run_in_english<T>(word: impl FnOnce() -> T) -> T {
    let before = IS_ENGLISH_FORCED.replace(true);
    let worded = word();
    IS_ENGLISH_FORCED.set(before);
    worded
}

/// Parses an answer that means yes or no, in any language. Returns `None` for any other text.
pub fn parse_yes_no(line: &str) -> Option<bool> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" | "是" => Some(true),
        "n" | "no" | "否" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_locale_maps_chinese_locales_to_chinese() {
        for locale in [
            "zh_CN.UTF-8",
            "zh_SG",
            "zh-Hans",
            "zh",
            "zh_TW.UTF-8",
            "zh_HK.utf8",
            "ZH_cn",
            "zh.UTF-8",
            "zh@pinyin",
        ] {
            assert_eq!(Language::from_locale(locale), Language::Chinese, "{locale}");
        }
        for locale in [
            "",
            "C",
            "C.UTF-8",
            "POSIX",
            "en_US.UTF-8",
            "zha_CN",
            "zhx",
            "_zh",
            "de_CH",
        ] {
            assert_eq!(Language::from_locale(locale), Language::English, "{locale}");
        }
    }

    #[test]
    fn parse_yes_no_accepts_every_language() {
        for (line, said) in [
            ("y", Some(true)),
            (" Yes\r\n", Some(true)),
            ("是\n", Some(true)),
            ("N", Some(false)),
            ("否", Some(false)),
            ("", None),
            ("yesterday", None),
            ("不是", None),
        ] {
            assert_eq!(parse_yes_no(line), said, "{line:?}");
        }
    }
}
