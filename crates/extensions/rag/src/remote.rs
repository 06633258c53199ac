//! Sends requests to a server that answers for a collection through the chat completions API: one
//! user message with the question, one answer, and optional sources. Also computes embeddings.

use std::time::Duration;

use futures::StreamExt as _;
use haft_types::{Cost, Price, Usage};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

/// The maximum size of a reply, in bytes. A larger reply is an error.
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;
/// The time limit of a request. It is generous, because the server may search and generate text.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(2);

/// A client of a server that answers questions to a collection or computes embeddings.
#[derive(Clone)]
pub struct Remote {
    url: Url,
    model: String,
    key: Option<String>,
    /// The full name of the model and its price per token, if known.
    price: Option<(String, Price)>,
    client: reqwest::Client,
}

/// The reason why a request to a server failed.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The server could not be reached, or the connection was interrupted.
    #[error(
        "the server `{host}` cannot be reached: {why}; check `url` in its configuration, and that it runs"
    )]
    Unreachable { host: String, why: String },
    /// The server returned an error status.
    #[error("the server `{host}` refused with {status}: {said}")]
    Refused {
        host: String,
        status: u16,
        /// The beginning of the server's reply.
        said: String,
    },
    /// The reply contains no valid embeddings.
    #[error("the server `{host}` gave no vectors: {why}")]
    NoVectors { host: String, why: String },
    /// The reply is not a chat completion.
    #[error(
        "the server `{host}` did not answer as a chat server does: {why}; `url` should end in `/v1`"
    )]
    InvalidReply { host: String, why: String },
}

/// The text and the sources with which a server answered a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteAnswer {
    pub text: String,
    /// The sources on which the answer is based. Empty if the server does not report them.
    pub sources: Vec<String>,
}

/// The usage and cost of one embedding request.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingCost {
    /// The name of the model, as `provider/model`.
    pub model: String,
    /// The tokens that the request used, by class.
    pub usage: Usage,
    /// The cost of the request.
    pub cost: Cost,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote")
            .field("url", &self.url.as_str())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// Creates a client for the server at `url`, which must end in `/v1`. Redirects are not
    /// followed, because they would send the key to another address.
    pub fn new(url: Url, model: String, key: Option<String>) -> Result<Self, RemoteError> {
        // This call fails only if a provider was already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = create_client_builder(&url).build();
        let client = built.map_err(|error| RemoteError::Unreachable {
            host: host_with_port(&url),
            why: error.to_string(),
        })?;
        Ok(Self {
            url,
            model,
            key,
            price: None,
            client,
        })
    }

    /// Sets the HTTP proxy through which the server is reached. `except` is a comma-separated list
    /// of hosts that are reached without the proxy.
    pub fn with_proxy(self, proxy: &str, except: Option<&str>) -> Result<Self, RemoteError> {
        let unreachable = |why: String| RemoteError::Unreachable {
            host: host_with_port(&self.url),
            why,
        };
        let named = if proxy.contains("://") {
            proxy.to_owned()
        } else {
            format!("http://{proxy}")
        };
        // The error omits the proxy's address, which may contain a password.
        let proxy = reqwest::Proxy::all(named).map_err(|_| {
            unreachable("the proxy of the environment is not an HTTP proxy".to_owned())
        })?;
        let proxy = proxy.no_proxy(except.and_then(reqwest::NoProxy::from_string));
        let client = create_client_builder(&self.url)
            .proxy(proxy)
            .build()
            .map_err(|error| unreachable(error.to_string()))?;
        Ok(Self { client, ..self })
    }

    /// Sets the full name and the token price of the model, so that requests report their cost.
    #[must_use]
    pub fn with_price(self, name: String, price: Option<Price>) -> Self {
        Self {
            price: price.map(|price| (name, price)),
            ..self
        }
    }

    /// Returns the host of the server. The port is included unless it is the default port.
    pub fn host(&self) -> String {
        host_with_port(&self.url)
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a question to the server and returns its answer.
    pub async fn ask_question(&self, question: &str) -> Result<RemoteAnswer, RemoteError> {
        let body = json!({
            "model": self.model,
            "messages": [{"role": "user", "content": question}],
            "stream": false,
        });
        let bytes = self.post_json("chat/completions", &body).await?;
        parse_answer(&bytes).map_err(|why| RemoteError::InvalidReply {
            host: self.host(),
            why,
        })
    }

    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// Returns one embedding for each text, in the order of the texts, and the cost of the request
    /// if a price is set. All embeddings have equal length.
    pub(crate) async fn embed_texts(
        &self,
        texts: &[String],
    ) -> Result<(Vec<Vec<f32>>, Option<EmbeddingCost>), RemoteError> {
        let body = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        let bytes = self.post_json("embeddings", &body).await?;
        let (vectors, input) =
            parse_vectors(&bytes, texts.len()).map_err(|why| RemoteError::NoVectors {
                host: self.host(),
                why,
            })?;
        let usage = Usage {
            input,
            ..Usage::default()
        };
        let cost = |(model, price): &(String, Price)| EmbeddingCost {
            model: model.clone(),
            usage,
            cost: price.request_cost(usage),
        };
        Ok((vectors, self.price.as_ref().map(cost)))
    }

    async fn post_json(&self, path: &str, body: &Value) -> Result<Vec<u8>, RemoteError> {
        let host = self.host();
        let unreachable = |error: reqwest::Error| RemoteError::Unreachable {
            host: host.clone(),
            why: root_cause_text(&error),
        };
        let address = format!("{}/{path}", self.url.as_str().trim_end_matches('/'));
        let mut request = self
            .client
            .post(address)
            .header("content-type", "application/json")
            .body(body.to_string());
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let reply = request.send().await.map_err(unreachable)?;
        let status = reply.status();
        let mut pieces = reply.bytes_stream();
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece.map_err(unreachable)?);
            if bytes.len() > MAX_REPLY_BYTES {
                return Err(RemoteError::InvalidReply {
                    host,
                    why: format!("more than {} MB", MAX_REPLY_BYTES >> 20),
                });
            }
        }
        if !status.is_success() {
            let said = String::from_utf8_lossy(&bytes).chars().take(300).collect();
            return Err(RemoteError::Refused {
                host,
                status: status.as_u16(),
                said,
            });
        }
        Ok(bytes)
    }
}

/// Parses a reply that contains `wanted` embeddings. Returns them in the order of the texts, with
/// the number of tokens that the request used.
fn parse_vectors(bytes: &[u8], wanted: usize) -> Result<(Vec<Vec<f32>>, u64), String> {
    #[derive(Deserialize)]
    struct EmbeddingReply {
        data: Vec<EmbeddedText>,
        #[serde(default)]
        usage: Value,
    }
    #[derive(Deserialize)]
    struct EmbeddedText {
        index: usize,
        embedding: Vec<f32>,
    }
    let mut reply: EmbeddingReply =
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    reply.data.sort_by_key(|one| one.index);
    let in_order = reply.data.iter().map(|one| one.index).eq(0..wanted);
    let length = reply.data.first().map_or(0, |one| one.embedding.len());
    let fits = |one: &EmbeddedText| {
        one.embedding.len() == length && one.embedding.iter().all(|part| part.is_finite())
    };
    if !in_order || length == 0 || !reply.data.iter().all(fits) {
        return Err(format!("{wanted} vectors of one length were wanted"));
    }
    let tokens = reply.usage["prompt_tokens"].as_u64().unwrap_or_default();
    Ok((
        reply.data.into_iter().map(|one| one.embedding).collect(),
        tokens,
    ))
}

fn host_with_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns the message of an error's innermost cause, because the outer errors only report that the
/// request failed.
fn root_cause_text(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn parse_answer(bytes: &[u8]) -> Result<RemoteAnswer, String> {
    let reply: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON ({error})"))?;
    let content = reply
        .pointer("/choices/0/message/content")
        .and_then(Value::as_str);
    let text = content
        .ok_or("it has no `choices[0].message.content`")?
        .to_owned();
    let sources = reply.get("citations").and_then(Value::as_array);
    let named = |source: &Value| match source {
        Value::String(name) => Some(name.clone()),
        other => other
            .get("url")
            .or_else(|| other.get("title"))
            .and_then(Value::as_str)
            .map(str::to_owned),
    };
    Ok(RemoteAnswer {
        text,
        sources: sources.into_iter().flatten().filter_map(named).collect(),
    })
}

fn create_client_builder(url: &Url) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .timeout(REQUEST_TIMEOUT)
        .no_proxy();
    // Plain HTTP needs no certificates, and loading the certificates of the system is slow.
    if url.scheme() == "http" {
        builder.tls_certs_only([])
    } else {
        builder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_reads_the_answer_and_its_sources() {
        let reply =
            br#"{"choices":[{"message":{"content":"so"}}],"citations":["a.md:1-2",{"url":"u"},3]}"#;
        assert_eq!(
            parse_answer(reply),
            Ok(RemoteAnswer {
                text: "so".into(),
                sources: vec!["a.md:1-2".into(), "u".into()]
            })
        );
        assert!(parse_answer(b"<html>").unwrap_err().contains("not JSON"));
        assert!(parse_answer(b"{}").unwrap_err().contains("choices"));
    }

    #[test]
    fn vectors_are_returned_in_the_order_of_the_texts_or_not_at_all() {
        let reply =
            br#"{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0.5]}],"usage":{"prompt_tokens":7}}"#;
        assert_eq!(
            parse_vectors(reply, 2),
            Ok((vec![vec![1.0, 0.5], vec![0.0, 1.0]], 7))
        );
        for wrong in [
            r#"{"data":[{"index":0,"embedding":[1,2]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}"#,
            r#"{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":"AACAPw=="},{"index":1,"embedding":"AACAPw=="}]}"#,
            r#"{"error":"no such model"}"#,
            "<html>",
        ] {
            assert!(parse_vectors(wrong.as_bytes(), 2).is_err(), "{wrong}");
        }
    }

    #[test]
    fn remote_debug_output_hides_the_key() {
        let url = Url::parse("http://h:1/v1").unwrap();
        let remote = Remote::new(url, "m".into(), Some("sk-secret".into()));
        if let Ok(remote) = remote {
            assert!(!format!("{remote:?}").contains("sk-secret"));
            assert_eq!(remote.host(), "h:1");
        }
    }
}
