//! The settings that determine the bytes of a request body, as a value that can be stored with the
//! request.

use bytes::Bytes;
use haft_types::{Api, ModelSpec, Request, ToolProtocol};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::catalogue::{Declared, guess_cache_rule};
use crate::error::ModelError;
use crate::protocol::RESULT_LABELS;
use crate::wire::{Encoder, Settings};

/// The settings that determine the bytes of a request body, apart from the request itself.
///
/// If these settings are stored with a logged request, they reproduce the exact bytes even after
/// the configuration has changed. They contain neither the API key nor headers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyEncoding {
    /// The model to which requests are sent.
    pub spec: ModelSpec,
    /// Fields added to every request body.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    extra_body: Map<String, Value>,
    /// True if the reply is streamed.
    stream: bool,
    /// True if the server is OpenAI's own. Other servers of this API reject some of OpenAI's
    /// fields.
    is_openai: bool,
    /// True if requests in the `react` protocol send the model's earlier turns under the assistant
    /// role, and stop the model before it writes a tool result. Absent in requests logged by early
    /// releases, which did neither.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    own_turns: bool,
    /// Fields that are left out of every request body, because the provider rejected them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    omitted_fields: Vec<String>,
}

impl Declared {
    /// Returns the settings by which request bodies for this model are encoded.
    pub fn body_encoding(&self) -> BodyEncoding {
        let host = Url::parse(self.provider.base_url.trim())
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        BodyEncoding {
            spec: self.spec.clone(),
            extra_body: self.extra_body.clone(),
            stream: self.provider.stream,
            is_openai: host.as_deref() == Some("api.openai.com"),
            own_turns: self.spec.tool_protocol == ToolProtocol::React,
            omitted_fields: Vec::new(),
        }
    }
}

impl BodyEncoding {
    /// Returns the body of a request: the exact bytes that a [`Client`](crate::Client) with this
    /// encoding posts.
    pub fn encode_request(&self, request: &Request) -> Bytes {
        Encoder::new(self.encoder_settings()).encode_body(request)
    }

    /// Returns an encoding in which this model is served by a provider of the API `api`. The cache
    /// rule is the default of that API, the extra fields of the original provider are dropped, and
    /// the full name is changed, so that reasoning of earlier replies is not sent back.
    #[must_use]
    pub fn with_api(mut self, api: Api) -> Self {
        if self.spec.api != api {
            self.spec.provider = api.to_string();
            self.spec.api = api;
            self.spec.cache.rule = guess_cache_rule(api).rule;
            self.extra_body = Map::new();
            self.omitted_fields = Vec::new();
            self.is_openai = false;
        }
        self
    }

    /// Returns the output limit that `extra_body` sets for every request, in tokens.
    pub(crate) fn fixed_output_limit(&self) -> Option<u64> {
        let extra = &self.extra_body;
        let given = match self.spec.api {
            Api::OpenaiChat => extra
                .get("max_completion_tokens")
                .or_else(|| extra.get("max_tokens")),
            Api::OpenaiResponses => extra.get("max_output_tokens"),
            Api::Anthropic => extra.get("max_tokens"),
            Api::Gemini => extra
                .get("generationConfig")
                .and_then(|config| config.get("maxOutputTokens")),
        };
        given.and_then(Value::as_u64)
    }

    /// Returns the thinking budget that `extra_body` sets, in tokens. The output limit of a request
    /// must be larger.
    pub(crate) fn thinking_budget(&self) -> u64 {
        let thinking = self
            .extra_body
            .get("thinking")
            .and_then(|thinking| thinking.get("budget_tokens"));
        thinking.and_then(Value::as_u64).unwrap_or(0)
    }

    /// Returns the minimum output limit that the API accepts, or `None` if the configuration fixes
    /// the limit or needs a higher one for thinking.
    pub(crate) fn keep_alive_output_limit(&self) -> Option<u32> {
        if self.fixed_output_limit().is_some() || self.thinking_budget() > 0 {
            return None;
        }
        Some(match self.spec.api {
            // `max_tokens`, `max_completion_tokens` and `maxOutputTokens` start at 1.
            Api::Anthropic | Api::OpenaiChat | Api::Gemini => 1,
            // The API rejects a smaller `max_output_tokens`.
            Api::OpenaiResponses => 16,
        })
    }

    /// Returns the fields added to every request body. For the `react` protocol they include stop
    /// strings if the API supports them: a model that continues after an action would invent the
    /// result.
    fn extra_fields(&self) -> Map<String, Value> {
        let mut extra = self.extra_body.clone();
        let (key, fields) = match self.spec.api {
            _ if !self.own_turns || self.omits("stop") => return extra,
            Api::OpenaiChat => ("stop", &mut extra),
            Api::Anthropic => ("stop_sequences", &mut extra),
            Api::Gemini => match extra.entry("generationConfig").or_insert_with(|| json!({})) {
                Value::Object(config) => ("stopSequences", config),
                _ => return extra,
            },
            // The Responses API has no such field; the parser cuts off text after an action.
            Api::OpenaiResponses => return extra,
        };
        fields
            .entry(key)
            .or_insert_with(|| json!(RESULT_LABELS.map(|result| format!("\n{result}"))));
        extra
    }

    fn omits(&self, field: &str) -> bool {
        self.omitted_fields.iter().any(|omitted| omitted == field)
    }

    /// Finds the optional field that the provider rejected with `error`, and leaves it out of all
    /// further bodies. Returns `None` if the error names no such field. Fields of the configuration
    /// are kept: the user decides about them.
    pub(crate) fn omit_rejected_field(&mut self, error: &ModelError) -> Option<&'static str> {
        let ModelError::Status {
            status: 400 | 422,
            message,
            ..
        } = error
        else {
            return None;
        };
        let optional: &[&'static str] = match self.spec.api {
            Api::OpenaiChat => &["prompt_cache_key", "stream_options", "stop"],
            Api::OpenaiResponses => &["prompt_cache_key", "include"],
            Api::Anthropic | Api::Gemini => &[],
        };
        let rejected = optional.iter().copied().find(|field| {
            let is_kept = self.extra_body.contains_key(*field) || self.omits(field);
            !is_kept && names_field(message, field)
        })?;
        self.omitted_fields.push(rejected.to_owned());
        Some(rejected)
    }

    pub(crate) fn encoder_settings(&self) -> Settings {
        Settings {
            full_name: self.spec.full_name(),
            spec: self.spec.clone(),
            extra: self.extra_fields(),
            omitted: self.omitted_fields.clone(),
            stream: self.stream,
            is_openai: self.is_openai,
            own_turns: self.own_turns,
        }
    }
}

/// True if an error message names a field of the body. A name that is also an ordinary word counts
/// only in quotes.
fn names_field(message: &str, field: &str) -> bool {
    let is_unique = field.contains('_');
    is_unique && message.contains(field)
        || ['\'', '"', '`']
            .iter()
            .any(|quote| message.contains(&format!("{quote}{field}{quote}")))
}

#[cfg(test)]
mod tests {
    use haft_types::CacheKind;

    use super::*;
    use crate::catalogue::Catalogue;
    use crate::config::{ModelConfig, ProviderConfig};

    #[test]
    fn keep_alive_output_limit_is_the_minimum_of_the_api() {
        let limit = |api, extra: Value| {
            let mut encoding = encoding(api);
            encoding.extra_body = extra.as_object().cloned().unwrap_or_default();
            encoding.keep_alive_output_limit()
        };
        let minima = Api::ALL.map(|api| limit(api, json!({})));
        assert_eq!(minima, [Some(1), Some(16), Some(1), Some(1)]);
        let budget = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}});
        assert_eq!(limit(Api::Anthropic, budget), None, "it must be exceeded");
        let adaptive = json!({"thinking": {"type": "adaptive"}});
        assert_eq!(limit(Api::Anthropic, adaptive), Some(1));
        let fixed = json!({"max_completion_tokens": 9});
        assert_eq!(limit(Api::OpenaiChat, fixed), None, "the user fixed it");
    }

    fn encoding(api: Api) -> BodyEncoding {
        let mut provider = ProviderConfig::new(api, "https://api.openai.com/v1");
        provider.extra_body.insert("zeta".into(), 1.into());
        provider.extra_body.insert("alpha".into(), 2.into());
        let model = ModelConfig {
            max_output_tokens: Some(7),
            ..ModelConfig::default()
        };
        let catalogue = Catalogue::new(
            [("p".into(), provider)].into(),
            [("p/m".into(), model)].into(),
        )
        .unwrap();
        catalogue.resolve("p/m").unwrap().body_encoding()
    }

    #[test]
    fn body_encoding_round_trips_through_json() {
        for api in Api::ALL {
            let text = serde_json::to_string(&encoding(api)).unwrap();
            let read: BodyEncoding = serde_json::from_str(&text).unwrap();
            assert_eq!(read, encoding(api));
            assert!(
                text.find("zeta") < text.find("alpha"),
                "extra fields keep their order: {text}"
            );
        }
    }

    /// Logs of earlier releases have neither stop strings nor turns under the model's own role.
    #[test]
    fn body_encoding_without_own_turns_encodes_as_before() {
        let mut now = encoding(Api::Anthropic);
        (now.spec.tool_protocol, now.own_turns) = (ToolProtocol::React, true);
        assert!(now.encoder_settings().extra.contains_key("stop_sequences"));
        let mut logged = serde_json::to_value(&now).unwrap();
        logged.as_object_mut().unwrap().remove("own_turns");
        let then: BodyEncoding = serde_json::from_value(logged).unwrap();
        assert!(!then.own_turns && !then.encoder_settings().extra.contains_key("stop_sequences"));
    }

    /// Gemini takes at most five stop strings, in the limits of a reply. Values that the user set
    /// are kept.
    #[test]
    fn gemini_settings_include_stop_sequences() {
        let mut gemini = encoding(Api::Gemini);
        assert!(
            !gemini
                .encoder_settings()
                .extra
                .contains_key("generationConfig"),
            "native calls need no stop"
        );
        gemini.own_turns = true;
        let stops = json!({"stopSequences": ["\n[tool]", "\nObservation:"]});
        assert_eq!(gemini.encoder_settings().extra["generationConfig"], stops);
        gemini.extra_body.insert(
            "generationConfig".into(),
            json!({"topK": 3, "stopSequences": ["END"]}),
        );
        assert_eq!(
            gemini.encoder_settings().extra["generationConfig"],
            gemini.extra_body["generationConfig"]
        );
    }

    #[test]
    fn over_another_api_resets_provider_settings() {
        let other = encoding(Api::OpenaiChat).with_api(Api::Anthropic);
        assert_eq!(
            (other.spec.full_name().as_str(), other.spec.cache.rule),
            ("anthropic/m", CacheKind::Anthropic)
        );
        assert!(!other.is_openai && other.extra_body.is_empty());
        assert_eq!(
            encoding(Api::Gemini).with_api(Api::Gemini),
            encoding(Api::Gemini)
        );
    }
}
