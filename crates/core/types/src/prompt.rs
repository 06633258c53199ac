//! The texts haft itself writes for models, in the languages it has them in.

use serde::{Deserialize, Serialize};

/// The language of haft's own texts for models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PromptLanguage {
    /// What most models were tried with.
    #[default]
    #[serde(rename = "en")]
    English,
    /// Simplified Chinese.
    #[serde(rename = "zh-CN")]
    Chinese,
}

/// A text for models in every language; made by [`prompt!`](crate::prompt).
#[derive(Clone, Copy, Debug)]
pub struct Prompt {
    /// The text as it is written first.
    pub english: &'static str,
    /// The same in Chinese.
    pub chinese: &'static str,
}

impl Prompt {
    /// The text in this language, without the line break at its end.
    pub fn text(self, language: PromptLanguage) -> &'static str {
        let text = match language {
            PromptLanguage::English => self.english,
            PromptLanguage::Chinese => self.chinese,
        };
        text.trim_ascii_end()
    }
}

impl From<&'static str> for Prompt {
    fn from(text: &'static str) -> Self {
        Self {
            english: text,
            chinese: text,
        }
    }
}

/// The text in the file `NAME.md` beside the code, and in `NAME.zh-CN.md`.
#[macro_export]
macro_rules! prompt {
    ($name:expr) => {
        $crate::Prompt {
            english: include_str!(concat!($name, ".md")),
            chinese: include_str!(concat!($name, ".zh-CN.md")),
        }
    };
}
