//! One HTTP exchange: posts a body and returns the reply or the reason of the failure.
//!
//! Invariant: a [`Reply`] is returned only if the protocol ended the message. Every wait has a
//! limit, and dropping the future of an exchange ends it.

mod connector;
mod failure;
mod receive;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft_types::{Api, Part};
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use reqwest::{Response, Url};
use tokio::time::timeout;

pub(crate) use failure::ExchangeFailure;

use crate::catalogue::Declared;
use crate::config::RetryConfig;
use crate::error::ModelError;
use crate::reply::{Delta, Reply};
use crate::secret::Secret;
use crate::wire::{self, Decode, Sink};
use connector::Connector;
use failure::NamedEndpoint;

/// The time limit for each connection attempt before the server has proved that it exists. It is
/// short, because three attempts must fit into five seconds.
const PROBE_CONNECT_TIMEOUT: Duration = Duration::from_millis(1_300);

/// A provider's endpoint, with everything needed to send requests to it.
#[derive(Clone)]
pub(crate) struct HttpTransport {
    http: reqwest::Client,
    uses_full_timeout: bool,
    connect_timeout: Duration,
    connector: Connector,
    url: Url,
    models_url: Url,
    headers: HeaderMap,
    api: Api,
    stream: bool,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
}

impl HttpTransport {
    pub(crate) fn new(
        declared: &Declared,
        key: Option<Secret>,
        retry: &RetryConfig,
    ) -> Result<Self, ModelError> {
        let provider = &declared.provider;
        let problem = |problem: String| ModelError::Config {
            provider: declared.spec.provider.clone(),
            problem,
        };
        let base = Url::parse(provider.base_url.trim()).map_err(|error| {
            problem(format!(
                "`base_url` is not a URL ({error}): {}",
                provider.base_url
            ))
        })?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(problem(format!(
                "`base_url` must start with http:// or https://: {}",
                provider.base_url
            )));
        }
        let connector = Connector::new(provider, &base).map_err(problem)?;
        let connect_timeout = Duration::from_secs(retry.connect_timeout_s.max(1));
        let http = connector
            .build_client(PROBE_CONNECT_TIMEOUT.min(connect_timeout))
            .map_err(|error| {
                problem(format!(
                    "no HTTP client could be made: {}",
                    failure::root_cause_message(&error)
                ))
            })?;
        Ok(Self {
            http,
            uses_full_timeout: false,
            connect_timeout,
            connector,
            url: wire::request_endpoint(&base, &declared.spec, provider.stream),
            models_url: wire::models_endpoint(&base, provider.api),
            headers: build_headers(declared, key).map_err(problem)?,
            api: provider.api,
            stream: provider.stream,
            first_byte_timeout: retry.first_byte_timeout(),
            idle_timeout: retry.idle_timeout(),
        })
    }

    /// Replaces the short connect timeout with the configured one, because the server has proved
    /// that it exists. Called only after a connection has failed, so that open connections are kept
    /// until then.
    pub(crate) fn use_full_connect_timeout(&mut self) {
        if self.uses_full_timeout {
            return;
        }
        self.uses_full_timeout = true;
        if let Ok(http) = self.connector.build_client(self.connect_timeout) {
            self.http = http;
        }
    }

    /// Posts a request body and reads the reply to its end.
    pub(crate) async fn exchange(
        &self,
        body: Bytes,
        mut decoder: Box<dyn Decode>,
        sink: Sink<'_>,
    ) -> Result<Reply, ExchangeFailure> {
        let started = Instant::now();
        let request = self
            .http
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(body);
        let response = self.send_request(request).await?;
        let mut first_token = None;
        let mut timed = |delta: Delta| {
            first_token.get_or_insert_with(|| started.elapsed());
            sink(delta);
        };
        if self.stream {
            self.read_streamed_reply(response, decoder.as_mut(), &mut timed)
                .await?;
        } else {
            self.read_whole_reply(response, decoder.as_mut(), &mut timed)
                .await?;
        }
        let duration = started.elapsed();
        let decoded = decoder.finish();
        if let Some(id) = find_repeated_call_id(&decoded.parts) {
            // Running these calls would run one of them twice.
            return Err(ModelError::BadReply {
                problem: format!("two calls have the id `{id}`"),
            }
            .into());
        }
        Ok(Reply {
            parts: decoded.parts,
            stop: decoded.stop,
            usage: decoded.usage,
            time_to_first_token: first_token.unwrap_or(duration),
            duration,
        })
    }

    /// Fetches the provider's own list of models.
    pub(crate) async fn list_models(&self) -> Result<Vec<String>, ExchangeFailure> {
        let response = self
            .send_request(
                self.http
                    .get(self.models_url.clone())
                    .headers(self.headers.clone()),
            )
            .await?;
        let body = self.read_whole_body(response).await?;
        let list: serde_json::Value =
            serde_json::from_slice(&body).map_err(|_| self.not_an_api_failure(None, &body))?;
        let models = list
            .get("data")
            .or_else(|| list.get("models"))
            .and_then(serde_json::Value::as_array);
        let names = models
            .ok_or_else(|| self.not_an_api_failure(None, &body))?
            .iter()
            .filter_map(|model| {
                let name = model.get("id").or_else(|| model.get("name"))?.as_str()?;
                Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
            });
        Ok(names.collect())
    }

    /// Sends a request and returns the response, with its body unread. Any status other than
    /// success is a failure.
    async fn send_request(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<Response, ExchangeFailure> {
        let sent = timeout(self.first_byte_timeout, request.send()).await;
        let response = sent
            .map_err(|_| {
                ExchangeFailure::from(ModelError::Timeout {
                    waited: self.first_byte_timeout,
                    awaited: "the first byte",
                })
            })?
            .map_err(|error| ExchangeFailure::from_send_error(self.named_endpoint(), error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = receive::read_preview(response).await;
        Err(ExchangeFailure::from_status(
            self.named_endpoint(),
            status,
            &headers,
            &body,
        ))
    }

    fn not_an_api_failure(&self, content_type: Option<&str>, body: &[u8]) -> ExchangeFailure {
        ExchangeFailure::not_an_api(self.named_endpoint(), content_type, body)
    }

    /// Returns the endpoint as shown in error messages: without the query of its URL, which may
    /// contain a key.
    fn named_endpoint(&self) -> NamedEndpoint {
        let mut url = self.url.clone();
        url.set_query(None);
        // Neither call fails for a URL that can be posted to.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        NamedEndpoint {
            url: url.into(),
            api: self.api,
        }
    }
}

/// Returns the first call id that occurs more than once.
fn find_repeated_call_id(parts: &[Part]) -> Option<&str> {
    let mut seen = HashSet::new();
    parts.iter().find_map(|part| match part {
        Part::ToolCall(call) => (!seen.insert(call.id.as_str())).then_some(call.id.as_str()),
        Part::Text { .. } | Part::Thinking(_) | Part::ToolResult(_) | Part::Image(_) => None,
    })
}

fn build_headers(declared: &Declared, key: Option<Secret>) -> Result<HeaderMap, String> {
    let provider = &declared.provider;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("haft/", env!("CARGO_PKG_VERSION"))),
    );
    let accept = if provider.stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    let (name, prefix) = match provider.api {
        Api::OpenaiChat | Api::OpenaiResponses => (AUTHORIZATION, "Bearer "),
        Api::Anthropic => (HeaderName::from_static("x-api-key"), ""),
        Api::Gemini => (HeaderName::from_static("x-goog-api-key"), ""),
    };
    if provider.api == Api::Anthropic {
        let version = HeaderName::from_static("anthropic-version");
        headers.insert(
            version,
            HeaderValue::from_static(wire::anthropic::API_VERSION),
        );
    }
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", key.expose()))
            .map_err(|_| "the key holds characters that no header can carry".to_owned())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &provider.headers {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`headers`: `{name}` is not the name of a header"))?;
        let value = HeaderValue::from_str(value).map_err(|_| {
            format!("`headers`: the value of `{name}` holds characters that no header can carry")
        })?;
        headers.insert(parsed, value);
    }
    Ok(headers)
}
