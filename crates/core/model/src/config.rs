//! The configuration sections this crate owns: `[providers.NAME]`, `[models."PROVIDER/MODEL"]` and
//! `[retry]`.

use std::collections::BTreeMap;
use std::time::Duration;

use haft_types::{Api, CacheRule, Capabilities, ModelProfile, Price, ToolProtocol};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `[providers.NAME]`: where a provider is and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// The wire protocol.
    pub api: Api,
    /// Where it is. For `anthropic` and `gemini` with or without the version part.
    pub base_url: String,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// The file that holds the key.
    pub api_key_file: Option<String>,
    /// The command that prints the key.
    pub api_key_command: Option<String>,
    /// The entry of the system's keyring that holds the key, as `SERVICE` or `SERVICE/ACCOUNT`.
    pub api_key_keyring: Option<String>,
    /// Headers added to every request. One of the same name replaces haft's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Fields added to every request body.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
    /// The proxy to go through; empty for none, whatever the environment says. This crate does not
    /// ask the environment: who wants `HTTPS_PROXY` honoured puts it here.
    pub proxy: Option<String>,
    /// Hosts, domains and networks that are reached without the proxy, separated by commas, as in
    /// `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// A PEM file with certificates that are trusted beside the system's.
    pub ca_file: Option<String>,
    /// Whether replies are streamed.
    #[serde(default = "yes")]
    pub stream: bool,
}

fn yes() -> bool {
    true
}

impl ProviderConfig {
    /// A provider of which only the protocol and the address are known.
    pub fn new(api: Api, base_url: impl Into<String>) -> Self {
        Self {
            api,
            base_url: base_url.into(),
            api_key_env: None,
            api_key_file: None,
            api_key_command: None,
            api_key_keyring: None,
            headers: BTreeMap::new(),
            extra_body: Map::new(),
            proxy: None,
            no_proxy: None,
            ca_file: None,
            stream: true,
        }
    }
}

/// `[models."PROVIDER/MODEL"]`: what is known of a model. Everything is optional; what is absent
/// gets a default or stays unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Tokens that fit, input and output together.
    pub context_window: Option<u32>,
    /// The most it may write in one reply.
    pub max_output_tokens: Option<u32>,
    /// Prices per million tokens, in its currency.
    pub price: Option<Price>,
    /// The currency of its prices, such as `CNY`; USD when absent.
    pub currency: Option<String>,
    /// How its prefix cache works.
    pub cache: Option<CacheRule>,
    /// How it calls tools.
    pub tool_protocol: Option<ToolProtocol>,
    /// What it can take and do.
    pub capabilities: Option<Capabilities>,
    /// What a token costs that is written to the cache for an hour, per million in its currency;
    /// used when `cache.ttl` is `1h`.
    pub cache_write_1h: Option<f64>,
    /// How much it is given at once: `full` or `small`; by default what its window says.
    pub profile: Option<ModelProfile>,
    /// Its tokens for each token of `o200k`, the tokenizer everything is counted with; corrected
    /// from its replies.
    pub tokenizer_factor: Option<f64>,
    /// Fields added to every request body; they win over the provider's.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
}

/// `[retry]`: how often and how patiently a failed request is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryConfig {
    /// How many retries after the first try; -1 without limit.
    pub attempts: i32,
    /// The wait before the first retry; it doubles with each further one.
    pub base_delay_ms: u64,
    /// The longest wait, unless the server asks for a longer one.
    pub max_delay_ms: u64,
    /// How long connecting may take.
    pub connect_timeout_s: u64,
    /// How long the first byte of a reply may take.
    pub first_byte_timeout_s: u64,
    /// How long a reply may fall silent.
    pub idle_timeout_s: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            attempts: 5,
            base_delay_ms: 500,
            max_delay_ms: 30_000,
            connect_timeout_s: 10,
            first_byte_timeout_s: 300,
            idle_timeout_s: 120,
        }
    }
}

impl RetryConfig {
    /// How many retries there may be; `None` without limit.
    pub fn limit(&self) -> Option<u32> {
        u32::try_from(self.attempts).ok()
    }

    pub(crate) fn first_byte_timeout(&self) -> Duration {
        Duration::from_secs(self.first_byte_timeout_s.max(1))
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_s.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_fields_make_a_provider() {
        let read: ProviderConfig = serde_json::from_str(
            r#"{"api": "openai-chat", "base_url": "http://127.0.0.1:9999/v1"}"#,
        )
        .unwrap();
        assert_eq!(
            read,
            ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:9999/v1")
        );
        assert!(read.stream);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let provider = r#"{"api": "gemini", "base_url": "http://h", "base": 1}"#;
        assert!(
            serde_json::from_str::<ProviderConfig>(provider)
                .unwrap_err()
                .to_string()
                .contains("`base`")
        );
        assert!(serde_json::from_str::<ModelConfig>(r#"{"window": 1}"#).is_err());
        assert!(serde_json::from_str::<RetryConfig>(r#"{"tries": 1}"#).is_err());
    }

    #[test]
    fn minus_one_is_without_limit() {
        let read: RetryConfig = serde_json::from_str(r#"{"attempts": -1}"#).unwrap();
        assert_eq!(read.limit(), None);
        assert_eq!(RetryConfig::default().limit(), Some(5));
        assert_eq!(
            RetryConfig {
                attempts: 0,
                ..read
            }
            .limit(),
            Some(0)
        );
    }
}
