//! The properties of a model that haft needs to send it a request and to price it.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use crate::price::Price;

/// The wire protocol of a model's API.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Api {
    /// OpenAI Chat Completions, which many servers implement.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
}

impl Api {
    /// All APIs, in the order in which they are documented.
    pub const ALL: [Self; 4] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
    ];

    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The error for a text that is not the name of an API.
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

/// The way in which tools are described to the model and in which the model writes its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolProtocol {
    /// Calls use the API's own tool calling.
    #[default]
    Native,
    /// Calls are written as text: one tag per tool, one tag per parameter.
    Xml,
    /// Calls are written as text: `Thought: …`, then `Action: Name[{…}]`.
    React,
}

impl ToolProtocol {
    /// True if calls are written as part of the model's text. The prompt then has to explain how to
    /// write them and how to finish.
    pub fn is_text(self) -> bool {
        match self {
            Self::Native => false,
            Self::Xml | Self::React => true,
        }
    }
}

/// The rule by which a provider's prefix cache matches requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheKind {
    /// Anthropic: cache entries exist only at markers in the request.
    Anthropic,
    /// Automatic caching that matches the longest common prefix; assumed for servers whose rule is
    /// unknown.
    #[default]
    Automatic,
    /// OpenAI before GPT-5.6: automatic caching that matches the longest common prefix, in steps of
    /// 128 tokens.
    Openai,
    /// OpenAI from GPT-5.6: an entry matches only if it equals the beginning of the request up to a
    /// breakpoint.
    OpenaiBreakpoints,
    /// Gemini: automatic caching that usually matches the common prefix, without a guarantee.
    Gemini,
    /// DeepSeek: caching of whole units, which end where requests and replies end. A request that
    /// only appends to the previous one always matches a unit.
    Deepseek,
    /// vLLM: automatic caching that matches the common prefix in whole blocks of the KV cache.
    Vllm,
    /// llama.cpp: automatic caching that matches the common prefix with the last prompt in the
    /// slot, token by token.
    LlamaCpp,
    /// The provider has no cache.
    None,
}

/// The part of an earlier request that a provider can find in its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMatch {
    /// The provider has no cache.
    NoCache,
    /// The common prefix of the earlier request and the new request.
    Prefix,
    /// A prefix that ends at a boundary marked in the earlier request. Writing this prefix to the
    /// cache is billed.
    Boundaries,
}

impl CacheKind {
    /// Returns the part of an earlier request that a cache of this kind can match.
    pub fn cache_match(self) -> CacheMatch {
        match self {
            Self::None => CacheMatch::NoCache,
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

/// The rules of a model's prefix cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheRule {
    /// The kind of cache, which determines how requests are matched.
    pub rule: CacheKind,
    /// The minimum length of a cached prefix, in tokens.
    pub min: u32,
    /// The lifetime of a cache entry without a hit, such as `5m` or `1h`.
    pub ttl: String,
    /// The lifetimes that a request can choose; empty if the lifetimes are unknown or there is no
    /// choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ttls: Vec<String>,
    /// The number of content blocks before a boundary in which the provider searches for an earlier
    /// boundary; absent if the search is not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look_back: Option<u32>,
    /// The number of tokens between the prefixes that the provider stores without a marker
    /// (`deepseek`, `gemini`); absent if unknown.
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
    /// Returns the time after which a cache entry without a hit expires. Returns `None` if the
    /// server evicts entries only when it needs the memory, or if the lifetime is unknown.
    pub fn expires_after(&self) -> Option<Duration> {
        match self.rule {
            CacheKind::Vllm | CacheKind::LlamaCpp => None,
            CacheKind::Automatic
            | CacheKind::Openai
            | CacheKind::OpenaiBreakpoints
            | CacheKind::Anthropic
            | CacheKind::Gemini
            | CacheKind::Deepseek
            | CacheKind::None => self.entry_lifetime(),
        }
    }

    /// Parses [`ttl`](Self::ttl), the lifetime of a cache entry without a hit. Returns `None` if
    /// the text is not a number followed by `s`, `m`, `h` or `d`.
    pub fn entry_lifetime(&self) -> Option<Duration> {
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

/// Optional features of a model and its API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capabilities {
    /// True if the model accepts images.
    pub images: bool,
    /// True if the model can reason. On some APIs this changes the parameters of a request.
    pub reasoning: bool,
    /// True if a user message may directly follow a tool result.
    pub user_after_tool: bool,
    /// True if the model continues a partial reply that is sent as the last message.
    pub prefill: bool,
    /// True if the model needs its reasoning sent back with every reply that called tools
    /// (`reasoning_content` on `openai-chat`; the other APIs have rules of their own).
    pub reasoning_back: bool,
    /// True if the output limit is sent as `max_tokens` even though the model reasons
    /// (`openai-chat`).
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

/// The properties of a model that the context engine and the codecs need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's name in the provider's API.
    pub name: String,
    pub api: Api,
    /// The size of the context window in tokens, for input and output together.
    pub context_window: u32,
    /// The maximum number of tokens in one reply, if known.
    pub max_output_tokens: Option<u32>,
    /// The prices of the model, if known; never guessed.
    pub price: Option<Price>,
    /// The rules of the model's prefix cache.
    pub cache: CacheRule,
    pub tool_protocol: ToolProtocol,
    pub capabilities: Capabilities,
    /// The ratio of the model's own token count to the count by `o200k`, the tokenizer that haft
    /// uses.
    #[serde(default = "default_tokenizer_factor")]
    pub tokenizer_factor: f64,
    #[serde(default)]
    pub profile: ModelProfile,
    /// The lifetime of cache entries in force instead of [`CacheRule::ttl`], if haft has bought
    /// another one for this conversation or has measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bought_ttl: Option<String>,
}

/// The amount of text that a model is sent at once, and the way in which its replies are parsed.
/// `haft-model` chooses the profile of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelProfile {
    /// The model gets the default set of tools, with full descriptions.
    #[default]
    Full,
    /// The model gets a few tools, with short descriptions. A reply that consists only of calls
    /// written as text is parsed as calls.
    Small,
}

fn default_tokenizer_factor() -> f64 {
    1.0
}

impl ModelSpec {
    /// The context window, in tokens, that is assumed for a model whose configuration does not
    /// specify a window.
    pub const DEFAULT_WINDOW: u32 = 200_000;

    /// Returns `provider/model`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.provider, self.name)
    }

    /// Returns the lifetime of cache entries in force, as a number with a unit.
    pub fn ttl_in_force(&self) -> &str {
        self.bought_ttl.as_deref().unwrap_or(&self.cache.ttl)
    }

    /// Returns the cache rule with the lifetime of entries in force.
    pub fn cache_in_force(&self) -> CacheRule {
        CacheRule {
            ttl: self.ttl_in_force().to_owned(),
            ..self.cache.clone()
        }
    }

    /// Returns the time in force after which a cache entry without a hit expires, like
    /// [`CacheRule::expires_after`].
    pub fn cache_lifetime(&self) -> Option<Duration> {
        self.cache_in_force().expires_after()
    }

    /// Returns the number of tokens kept free for the reply: the model's maximum output, or the
    /// given share of the window if the maximum is unknown.
    pub fn output_reserve(&self, share_if_unknown: f64) -> u32 {
        self.max_output_tokens
            .unwrap_or((f64::from(self.context_window) * share_if_unknown) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_life_is_a_number_with_a_unit() {
        let life = |ttl: &str| {
            CacheRule {
                ttl: ttl.into(),
                ..CacheRule::default()
            }
            .entry_lifetime()
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
