//! Which language this process speaks, and the answers that mean the same in each.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// A language there are messages in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// What is spoken unless another is chosen, and what every message is there in.
    #[default]
    English,
    /// Chinese in simplified characters.
    Chinese,
}

impl Language {
    /// Its tag, as pages and the configuration name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh-CN",
        }
    }

    /// The language for a locale such as `zh_CN.UTF-8`. Traditional Chinese gets the simplified
    /// one: it is the nearest there is.
    pub fn of_locale(locale: &str) -> Self {
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

static CHINESE: AtomicBool = AtomicBool::new(false);

thread_local! {
    static ENGLISH_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Shows every message of this process in this language from now on.
pub fn speak(language: Language) {
    CHINESE.store(language == Language::Chinese, Ordering::Relaxed);
}

/// The language messages are shown in now.
pub fn spoken() -> Language {
    if CHINESE.load(Ordering::Relaxed) && !ENGLISH_HERE.get() {
        Language::Chinese
    } else {
        Language::English
    }
}

/// Words something that a model or a program reads: in English, whatever this process speaks.
pub fn in_english<T>(word: impl FnOnce() -> T) -> T {
    let before = ENGLISH_HERE.replace(true);
    let worded = word();
    ENGLISH_HERE.set(before);
    worded
}

/// Whether a typed line says yes or no, in any language; nothing where it says something else.
pub fn agreement(line: &str) -> Option<bool> {
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
    fn every_chinese_locale_gets_chinese() {
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
            assert_eq!(Language::of_locale(locale), Language::Chinese, "{locale}");
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
            assert_eq!(Language::of_locale(locale), Language::English, "{locale}");
        }
    }

    #[test]
    fn yes_and_no_are_understood_in_every_language() {
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
            assert_eq!(agreement(line), said, "{line:?}");
        }
    }
}
