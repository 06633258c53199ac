//! The configuration sections this crate owns: `[providers.NAME]`, `[models."PROVIDER/MODEL"]` and
//! `[retry]`.

use std::collections::BTreeMap;
use std::time::Duration;

use haft_types::{Api, CacheRule, Capabilities, ModelProfile, Price, ToolProtocol};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `[providers.NAME]`: the address of a provider and how to connect to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// The wire protocol of the provider's server.
    pub api: Api,
    /// The base URL. For `anthropic` and `gemini`, the version part of the path may be omitted.
    pub base_url: String,
    /// The environment variable that holds the API key.
    pub api_key_env: Option<String>,
    /// The file that holds the API key.
    pub api_key_file: Option<String>,
    /// The command that prints the API key.
    pub api_key_command: Option<String>,
    /// The entry of the system's keyring that holds the API key, as `SERVICE` or `SERVICE/ACCOUNT`.
    pub api_key_keyring: Option<String>,
    /// Headers added to every request. If haft sets a header with an equal name, the value given
    /// here replaces haft's value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Fields added to every request body.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
    /// The URL of the proxy for all connections; empty for none. This crate does not read the
    /// environment: a caller that honors `HTTPS_PROXY` puts its value here.
    pub proxy: Option<String>,
    /// Hosts, domains and networks that are reached without the proxy, separated by commas as in
    /// `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// A PEM file with certificates that are trusted in addition to the system's.
    pub ca_file: Option<String>,
    /// True if replies are streamed, which is the default.
    #[serde(default = "default_stream")]
    pub stream: bool,
}

fn default_stream() -> bool {
    true
}

impl ProviderConfig {
    /// Creates a provider from its protocol and address; all other settings have their defaults.
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

/// `[models."PROVIDER/MODEL"]`: the properties of a model. All fields are optional; an absent field
/// gets a default or stays unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// The size of the context window in tokens, input and output together.
    pub context_window: Option<u32>,
    /// The maximum number of tokens in one reply.
    pub max_output_tokens: Option<u32>,
    /// The prices per million tokens, in the currency named by `currency`.
    pub price: Option<Price>,
    /// The currency of the prices, such as `CNY`; USD if absent.
    pub currency: Option<String>,
    /// The rule by which the provider caches prompt prefixes.
    pub cache: Option<CacheRule>,
    /// The protocol in which the model writes tool calls.
    pub tool_protocol: Option<ToolProtocol>,
    /// The optional features that the model supports.
    pub capabilities: Option<Capabilities>,
    /// The price of writing a million tokens to the cache for an hour, used if `cache.ttl` is `1h`.
    pub cache_write_1h: Option<f64>,
    /// The profile, `full` or `small`, which determines how many tools the model gets and how they
    /// are described. By default it follows from the model's name and context window.
    pub profile: Option<ModelProfile>,
    /// The ratio of the model's own token count to haft's count with the `o200k` tokenizer;
    /// corrected from the model's replies.
    pub tokenizer_factor: Option<f64>,
    /// Fields added to every request body. They take precedence over the provider's.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
}

/// Waits above this, requested by the server, are long.
const LONG_WAIT: Duration = Duration::from_mins(1);

/// `[retry]`: the number of attempts for a failed request and the waits between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryConfig {
    /// The number of retries after the first attempt; -1 means no limit.
    pub attempts: i32,
    /// The wait before the first retry, in milliseconds; it doubles with each further retry.
    pub base_delay_ms: u64,
    /// The longest wait between two attempts, in milliseconds, unless the server asks for a longer
    /// one.
    pub max_delay_ms: u64,
    /// The time limit for connecting, in seconds.
    pub connect_timeout_s: u64,
    /// The time limit for the first byte of a reply, in seconds.
    pub first_byte_timeout_s: u64,
    /// The time limit between two pieces of a reply, in seconds.
    pub idle_timeout_s: u64,
    /// True if a person watches the requests and can interrupt them. The full number of retries then
    /// applies even if the server has never answered. Not a setting.
    #[serde(skip)]
    pub is_attended: bool,
    /// True if a failure after which the server asks for a wait of over a minute does not count as an
    /// attempt. Not a setting.
    #[serde(skip)]
    pub outlasts_long_waits: bool,
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
            is_attended: false,
            outlasts_long_waits: false,
        }
    }
}

impl RetryConfig {
    /// Returns the maximum number of retries, or `None` if there is no limit.
    pub fn max_retries(&self) -> Option<u32> {
        u32::try_from(self.attempts).ok()
    }

    /// True if a failure with the server's hint `wait` does not count as an attempt.
    pub(crate) fn outlasts_wait(&self, wait: Option<Duration>) -> bool {
        self.outlasts_long_waits && wait.is_some_and(|wait| wait > LONG_WAIT)
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
    fn provider_config_needs_only_api_and_base_url() {
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
    fn configuration_rejects_unknown_keys() {
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
    fn retry_limit_of_minus_one_is_unlimited() {
        let read: RetryConfig = serde_json::from_str(r#"{"attempts": -1}"#).unwrap();
        assert_eq!(read.max_retries(), None);
        assert_eq!(RetryConfig::default().max_retries(), Some(5));
        assert_eq!(
            RetryConfig {
                attempts: 0,
                ..read
            }
            .max_retries(),
            Some(0)
        );
    }
}
