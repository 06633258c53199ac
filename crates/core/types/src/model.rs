//! What haft must know of a model to send it a request and price it.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use crate::price::Price;

/// A wire protocol.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Api {
    /// OpenAI Chat Completions, and the many servers that speak it.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
}

impl Api {
    /// All four, in the order they are documented.
    pub const ALL: [Self; 4] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// The name used in configuration.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Not the name of a wire protocol.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an API; use openai-chat, openai-responses, anthropic or gemini")]
pub struct UnknownApi(String);

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(text: &str) -> Result<Self, UnknownApi> {
        Self::ALL
            .into_iter()
            .find(|api| api.name() == text)
            .ok_or_else(|| UnknownApi(text.to_owned()))
    }
}

/// How tools are described to the model and how it calls them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolProtocol {
    /// The API's own tool calling.
    #[default]
    Native,
    /// Calls are written as text: one tag a tool, one tag a parameter.
    Xml,
    /// Calls are written as text: `Thought: …`, then `Action: Name[{…}]`.
    React,
}

impl ToolProtocol {
    /// Whether calls are part of the model's text, so that the prompt must say how to write them
    /// and how to finish.
    pub fn is_text(self) -> bool {
        match self {
            Self::Native => false,
            Self::Xml | Self::React => true,
        }
    }
}

/// How a provider's prefix cache decides what was seen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheKind {
    /// Anthropic: entries only at markers put into the request.
    Anthropic,
    /// Longest common prefix, automatic; for servers of which no more is known.
    #[default]
    Automatic,
    /// OpenAI before GPT-5.6: longest common prefix in steps of 128 tokens, automatic.
    Openai,
    /// OpenAI from GPT-5.6: exact match at breakpoints only.
    OpenaiBreakpoints,
    /// Gemini: common prefix, automatic, never promised.
    Gemini,
    /// DeepSeek: whole stored units, cut at the ends of requests and replies; a request that only
    /// appends always finds one.
    Deepseek,
    /// vLLM: common prefix in whole blocks of the KV cache.
    Vllm,
    /// llama.cpp: common prefix with the last prompt of the slot, token by token.
    LlamaCpp,
    /// No cache.
    None,
}

/// What a provider can find again of a request that was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMatch {
    /// Nothing: there is no cache.
    Nothing,
    /// Whatever both requests begin with.
    Prefix,
    /// What ends at a boundary that was marked before. Writing it is billed.
    Boundaries,
}

impl CacheKind {
    /// What this kind of cache finds again.
    pub fn finds(self) -> CacheMatch {
        match self {
            Self::None => CacheMatch::Nothing,
            Self::Automatic
            | Self::Openai
            | Self::Gemini
            | Self::Deepseek
            | Self::Vllm
            | Self::LlamaCpp => CacheMatch::Prefix,
            Self::Anthropic | Self::OpenaiBreakpoints => CacheMatch::Boundaries,
        }
    }
}

/// A model's prefix cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheRule {
    /// How a hit is decided.
    pub rule: CacheKind,
    /// Shorter prefixes are not cached.
    pub min: u32,
    /// How long an entry lives without a hit, such as `5m` or `1h`.
    pub ttl: String,
    /// The lives that can be asked for; empty when that is not known or there is no choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ttls: Vec<String>,
    /// Content blocks that a boundary looks back for an earlier one; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look_back: Option<u32>,
    /// Tokens between two prefixes that the provider stores on its own (`deepseek`, `gemini`);
    /// absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<u32>,
}

impl Default for CacheRule {
    fn default() -> Self {
        Self {
            rule: CacheKind::Automatic,
            min: 1024,
            ttl: "5m".into(),
            ttls: Vec::new(),
            look_back: None,
            interval: None,
        }
    }
}

impl CacheRule {
    /// How long an entry lives without a hit; `None` when `ttl` is not a number with `s`, `m`, `h`
    /// or `d`.
    pub fn life(&self) -> Option<Duration> {
        let (number, unit) = self.ttl.split_at_checked(self.ttl.len().checked_sub(1)?)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        number
            .parse::<u64>()
            .ok()?
            .checked_mul(seconds)
            .map(Duration::from_secs)
    }
}

/// What a model can take and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capabilities {
    /// It sees pictures.
    pub images: bool,
    /// It reasons: on some APIs other parameters apply then.
    pub reasoning: bool,
    /// It takes a user message directly after a tool result.
    pub user_after_tool: bool,
    /// It goes on with a beginning of its own reply that is sent as the last message.
    pub prefill: bool,
    /// It wants its reasoning back with every reply that called tools (`reasoning_content` on
    /// `openai-chat`; the other APIs have rules of their own).
    pub reasoning_back: bool,
    /// Though it reasons, it knows the limit of its reply as `max_tokens` (`openai-chat`).
    pub max_tokens: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        let images = true;
        let user_after_tool = true;
        Self {
            images,
            reasoning: false,
            user_after_tool,
            prefill: false,
            reasoning_back: false,
            max_tokens: false,
        }
    }
}

/// A model as the context engine and the codecs see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's name as the provider knows it.
    pub name: String,
    /// The wire protocol.
    pub api: Api,
    /// Tokens that fit, input and output together.
    pub context_window: u32,
    /// The most it may write in one reply, where known.
    pub max_output_tokens: Option<u32>,
    /// Prices, where known; never guessed.
    pub price: Option<Price>,
    /// Its prefix cache.
    pub cache: CacheRule,
    /// How tools are called.
    pub tool_protocol: ToolProtocol,
    /// What it can take and do.
    pub capabilities: Capabilities,
    /// Its tokens for each token of `o200k`, with which everything is counted.
    #[serde(default = "one")]
    pub tokenizer_factor: f64,
    /// How much it is given at once.
    #[serde(default)]
    pub profile: ModelProfile,
}

/// The amount of text a model receives at once, and the way its replies are read. `haft-model`
/// decides which profile a model has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelProfile {
    /// The default set of tools, each described whole.
    #[default]
    Full,
    /// Few tools in few words. Replies that are nothing but calls written as text are read as these
    /// calls.
    Small,
}

fn one() -> f64 {
    1.0
}

impl ModelSpec {
    /// The window assumed when a model's entry gives none.
    pub const DEFAULT_WINDOW: u32 = 200_000;

    /// `provider/model`, by which people name it.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.provider, self.name)
    }

    /// Tokens kept free for the reply: the model's maximum, or this share of the window when that
    /// is unknown.
    pub fn output_reserve(&self, share_if_unknown: f64) -> u32 {
        self.max_output_tokens
            .unwrap_or((f64::from(self.context_window) * share_if_unknown) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_a_number_with_a_unit() {
        let life = |ttl: &str| {
            CacheRule {
                ttl: ttl.into(),
                ..CacheRule::default()
            }
            .life()
            .map(|life| life.as_secs())
        };
        let lives = ["5m", "1h", "30s", "2d"].map(life);
        assert_eq!(lives, [Some(300), Some(3_600), Some(30), Some(172_800)]);
        assert_eq!(
            [
                "",
                "m",
                "5",
                "5 m",
                "-5m",
                "5min",
                "5分",
                "99999999999999999999d"
            ]
            .map(life),
            [None; 8]
        );
    }
}
