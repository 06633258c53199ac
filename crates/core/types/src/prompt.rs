//! The texts that haft itself writes for models, in every language they exist in.

use serde::{Deserialize, Serialize};

/// The language of haft's own texts for models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PromptLanguage {
    /// English, the language in which most models were tested.
    #[default]
    #[serde(rename = "en")]
    English,
    /// Simplified Chinese.
    #[serde(rename = "zh-CN")]
    Chinese,
}

/// A text for models in all languages of [`PromptLanguage`]. Created with
/// [`prompt!`](crate::prompt!).
#[derive(Clone, Copy, Debug)]
pub struct Prompt {
    /// The English text, from which the other languages are translated.
    pub english: &'static str,
    pub chinese: &'static str,
}

impl Prompt {
    /// Returns the text in `language`, without a final line break.
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

/// Embeds the text of the file `NAME.md` beside the calling file, and its translation in
/// `NAME.zh-CN.md`.
#[macro_export]
macro_rules! prompt {
    ($name:expr) => {
        $crate::Prompt {
            english: include_str!(concat!($name, ".md")),
            chinese: include_str!(concat!($name, ".zh-CN.md")),
        }
    };
}
