//! Serves collections to other local programs through the chat completions API (`haft rag serve`).
//!
//! The model's name selects the collection, and the last user message is the question. The answer
//! is written by the collection's model from passages ([`answer`]). Without a model, the answer
//! consists of the passages. Their sources are in `citations`.
//!
//! Invariant: a request is rejected without the token, from a page in a browser, and for a `Host`
//! that is not this machine.

mod answer;
mod citations;
mod completion;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use haft_types::Clock;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use self::answer::AnswerRequest;
pub use self::answer::{
    AnswerError, AnswerFuture, AnswerModel, AnswerPiece, AnswerPrompt, WrittenAnswer,
};
use self::completion::{Completion, build_empty_usage, build_error, format_event};
use crate::collection::{Collection, CollectionAnswer};

/// The maximum size of a request, in bytes.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// The maximum number of passages in an answer.
const MAX_PASSAGES: usize = 10;

/// A secret that clients of the server must send with each request.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    pub fn new(word: String) -> Self {
        Self(word)
    }

    /// True if `given` equals the token. Hashes are compared, so that the duration of the
    /// comparison reveals nothing about the token.
    fn matches(&self, given: &str) -> bool {
        blake3::hash(given.as_bytes()) == blake3::hash(self.0.as_bytes())
    }
}

/// A collection to serve, and the model that answers for it.
pub struct ServedCollection {
    pub collection: Collection,
    /// The model that writes answers from passages. If `None`, the passages are the answer.
    pub model: Option<Arc<dyn AnswerModel>>,
}

/// The collections to serve, with the server's token and clock.
pub struct RagServer {
    /// The collections to serve. A client selects one by its name.
    pub collections: Vec<ServedCollection>,
    /// The token that clients must send with each request.
    pub token: Token,
    /// The clock for the timestamps in answers.
    pub clock: Arc<dyn Clock>,
}

/// Serves requests until `end` resolves. The listener should accept connections from this machine
/// only.
pub async fn serve_collections(
    listener: TcpListener,
    serving: RagServer,
    end: impl Future<Output = ()>,
) {
    let serving = Arc::new(serving);
    let mut end = std::pin::pin!(end);
    loop {
        let accepted = tokio::select! {
            () = &mut end => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Accepting fails if there are no file descriptors left or the client has disconnected.
            // The next connection may succeed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let serving = Arc::clone(&serving);
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let serving = Arc::clone(&serving);
                async move { Ok::<_, Infallible>(serving.handle_request(request).await) }
            });
            // An error affects only the connection of this client.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// An HTTP error with which the server answers a request: status and message.
struct RequestRefusal(StatusCode, String);

impl From<AnswerError> for RequestRefusal {
    fn from(error: AnswerError) -> Self {
        Self(StatusCode::BAD_GATEWAY, error.to_string())
    }
}

impl RagServer {
    async fn handle_request(&self, request: Request<Incoming>) -> Reply {
        match self.route_request(request).await {
            Ok(reply) => reply,
            Err(RequestRefusal(status, message)) => {
                let error = build_error(status.as_u16(), &message);
                build_reply(status, "application/json", error.to_string())
            }
        }
    }

    async fn route_request(&self, request: Request<Incoming>) -> Result<Reply, RequestRefusal> {
        self.check_request(&request)?;
        let method = request.method().clone();
        let path = request.uri().path().trim_end_matches('/').to_owned();
        match (method, path.as_str()) {
            (Method::GET, "/v1/models" | "/models") => {
                let one = |served: &ServedCollection| json!({"id": served.collection.name, "object": "model", "created": 0, "owned_by": "haft"});
                let data: Vec<_> = self.collections.iter().map(one).collect();
                Ok(build_reply(
                    StatusCode::OK,
                    "application/json",
                    json!({"object": "list", "data": data}).to_string(),
                ))
            }
            (Method::POST, "/v1/chat/completions" | "/chat/completions") => {
                let body = Limited::new(request.into_body(), MAX_REQUEST_BYTES)
                    .collect()
                    .await;
                let body = body.map_err(|_| {
                    build_refusal(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "the request is larger than 1 MB",
                    )
                })?;
                self.answer_chat(&body.to_bytes()).await
            }
            _ => Err(build_refusal(
                StatusCode::NOT_FOUND,
                "there are `GET /v1/models` and `POST /v1/chat/completions`",
            )),
        }
    }

    /// Checks the host, the origin, and the token of a request. The error is the answer with which
    /// the request is rejected.
    fn check_request(&self, request: &Request<Incoming>) -> Result<(), RequestRefusal> {
        let header = |name| {
            request
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        if !header(HOST).is_some_and(is_loopback_host) {
            return Err(build_refusal(
                StatusCode::FORBIDDEN,
                "this server answers under the names of this machine only",
            ));
        }
        if request.headers().contains_key(ORIGIN) {
            return Err(build_refusal(
                StatusCode::FORBIDDEN,
                "this server answers no pages in browsers",
            ));
        }
        let given = header(AUTHORIZATION).and_then(|value| value.split_once(' '));
        let fits = given.is_some_and(|(scheme, word)| {
            scheme.eq_ignore_ascii_case("bearer") && self.token.matches(word.trim())
        });
        if fits {
            Ok(())
        } else {
            Err(build_refusal(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong; send it as the API key",
            ))
        }
    }

    async fn answer_chat(&self, body: &[u8]) -> Result<Reply, RequestRefusal> {
        let bad = |why: String| RequestRefusal(StatusCode::BAD_REQUEST, why);
        let asked: ChatQuery = serde_json::from_slice(body)
            .map_err(|error| bad(format!("the request cannot be read: {error}")))?;
        let served = self.find_collection(&asked.model)?;
        let name = &served.collection.name;
        let question = asked
            .last_question()
            .ok_or_else(|| bad("there is no message of the user with text in it".to_owned()))?;
        let answer = served.collection.ask_question(&question, MAX_PASSAGES);
        let answer = answer.await.map_err(|error| {
            RequestRefusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
        })?;
        let created = self.clock.now().as_second();
        let id = format!(
            "chatcmpl-{}",
            blake3::hash(format!("{created}{question}").as_bytes())
                .to_hex()
                .get(..24)
                .unwrap_or("0")
        );
        let completion = Completion {
            id,
            created,
            model: name.clone(),
        };
        if let Some(model) = &served.model
            && let CollectionAnswer::Passages(found) = &answer
            && !found.passages.is_empty()
        {
            let request = AnswerRequest::new(Arc::clone(model), name, &question, found);
            return if asked.stream {
                stream_written_answer(request, completion).await
            } else {
                build_written_answer(&request, &completion).await
            };
        }
        let (text, citations) = format_answer(&answer);
        if !asked.stream {
            let whole = completion.build_whole(&text, "stop", build_empty_usage(), &citations);
            return Ok(build_reply(
                StatusCode::OK,
                "application/json",
                whole.to_string(),
            ));
        }
        let first = format_event(&completion.build_first_chunk(&text));
        let last = format_event(&completion.build_last_chunk("stop", &citations));
        Ok(build_reply(
            StatusCode::OK,
            "text/event-stream",
            format!("{first}{last}data: [DONE]\n\n"),
        ))
    }

    /// Returns the collection that the client names as the model. If there is only one collection,
    /// it matches any name.
    fn find_collection(&self, model: &str) -> Result<&ServedCollection, RequestRefusal> {
        if let [only] = self.collections.as_slice() {
            return Ok(only);
        }
        self.collections
            .iter()
            .find(|one| one.collection.name == model)
            .ok_or_else(|| {
                let names: Vec<_> = self
                    .collections
                    .iter()
                    .map(|one| one.collection.name.as_str())
                    .collect();
                RequestRefusal(
                    StatusCode::NOT_FOUND,
                    format!(
                        "there is no collection `{model}`; there are {}",
                        names.join(", ")
                    ),
                )
            })
    }
}

fn build_refusal(status: StatusCode, message: &str) -> RequestRefusal {
    RequestRefusal(status, message.to_owned())
}

fn build_reply(status: StatusCode, content_type: &'static str, body: String) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)).boxed_unsync());
    *reply.status_mut() = status;
    set_content_type(&mut reply, content_type);
    reply
}

fn set_content_type(reply: &mut Reply, content_type: &'static str) {
    reply.headers_mut().insert(
        CONTENT_TYPE,
        hyper::header::HeaderValue::from_static(content_type),
    );
}

/// Waits for the whole answer of the model.
async fn build_written_answer(
    request: &AnswerRequest,
    completion: &Completion,
) -> Result<Reply, RequestRefusal> {
    let answer = request.collect_answer().await?;
    let whole = completion.build_whole(
        &answer.text,
        answer.finish_reason,
        answer.usage,
        request.sources(),
    );
    Ok(build_reply(
        StatusCode::OK,
        "application/json",
        whole.to_string(),
    ))
}

/// Waits for the first text of the model, and streams the answer from there. A failure before the
/// first text is an error status; a later one is an event with an error, which ends the stream.
async fn stream_written_answer(
    request: AnswerRequest,
    completion: Completion,
) -> Result<Reply, RequestRefusal> {
    let mut events = request.start_stream(completion);
    let first = match events.recv().await {
        Some(first) => first?,
        None => return Err(AnswerError::Interrupted("the server is ending".to_owned()).into()),
    };
    let rest = stream::unfold(events, |mut events| async move {
        let event = events.recv().await?;
        let text = event.unwrap_or_else(|error| {
            let status = StatusCode::BAD_GATEWAY.as_u16();
            format_event(&build_error(status, &error.to_string()))
        });
        Some((text, events))
    });
    let frames = stream::once(std::future::ready(first))
        .chain(rest)
        .map(|text| Ok::<_, Infallible>(Frame::data(Bytes::from(text))));
    let mut reply = Response::new(StreamBody::new(frames).boxed_unsync());
    set_content_type(&mut reply, "text/event-stream");
    Ok(reply)
}

/// True if the value of a `Host` header is a name of this machine. This check protects against web
/// pages whose domain resolves to this machine.
fn is_loopback_host(host: &str) -> bool {
    let is_loopback_name = |name: &str| {
        let address = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name);
        name.eq_ignore_ascii_case("localhost")
            || address.parse().is_ok_and(|one: IpAddr| one.is_loopback())
    };
    let with_port =
        |(name, port): (&str, &str)| port.parse::<u16>().is_ok() && is_loopback_name(name);
    is_loopback_name(host) || host.rsplit_once(':').is_some_and(with_port)
}

/// The fields of a chat completion request that the server uses. All other fields, such as the
/// temperature, are ignored.
#[derive(Deserialize)]
struct ChatQuery {
    #[serde(default)]
    model: String,
    messages: Vec<Value>,
    #[serde(default)]
    stream: bool,
}

impl ChatQuery {
    /// Returns the text of the last user message, or `None` if there is none.
    fn last_question(&self) -> Option<String> {
        let last = self
            .messages
            .iter()
            .rfind(|message| message["role"] == "user")?;
        let text = match &last["content"] {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect::<Vec<_>>()
                .join("\n"),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
        };
        Some(text).filter(|text| !text.trim().is_empty())
    }
}

/// Formats an answer as a text for the client, and returns it with the list of its sources.
fn format_answer(answer: &CollectionAnswer) -> (String, Vec<String>) {
    match answer {
        CollectionAnswer::Text { text, sources } => (text.clone(), sources.clone()),
        CollectionAnswer::Passages(found) if found.passages.is_empty() => {
            ("Nothing was found.".to_owned(), Vec::new())
        }
        CollectionAnswer::Passages(found) => {
            let passages: Vec<_> = found
                .passages
                .iter()
                .map(|one| format!("{}\n\n{}", one.source(), one.text.trim_end()))
                .collect();
            (
                passages.join("\n\n---\n\n"),
                found.passages.iter().map(crate::Passage::source).collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_this_machine_accepts_only_local_hosts() {
        for own in [
            "127.0.0.1",
            "127.0.0.1:8107",
            "localhost",
            "LOCALHOST:1",
            "[::1]:8107",
            "[::1]",
        ] {
            assert!(is_loopback_host(own), "{own}");
        }
        for other in [
            "",
            "example.com",
            "example.com:8107",
            "localhost.example.com",
            "10.0.0.1:8107",
            "127.0.0.1.nip.io",
        ] {
            assert!(!is_loopback_host(other), "{other}");
        }
    }

    #[test]
    fn question_is_the_last_message_of_the_user() {
        let asked = |messages: Value| ChatQuery {
            model: String::new(),
            messages: serde_json::from_value(messages).unwrap(),
            stream: false,
        };
        let user = |content: Value| json!({"role": "user", "content": content});
        let answer = json!({"role": "assistant", "content": "b"});
        assert_eq!(
            asked(json!([user(json!("a")), answer]))
                .last_question()
                .as_deref(),
            Some("a")
        );
        let parts = json!([{"type": "text", "text": "c"}, {"type": "image_url"}, {"type": "text", "text": "d"}]);
        assert_eq!(
            asked(json!([user(json!("a")), user(parts)]))
                .last_question()
                .as_deref(),
            Some("c\nd")
        );
        assert_eq!(asked(json!([user(json!(" "))])).last_question(), None);
        assert_eq!(asked(json!([])).last_question(), None);
    }
}
