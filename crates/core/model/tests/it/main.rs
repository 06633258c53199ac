//! Tests the client against the scripted server, which decodes and checks requests with its own
//! code.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what fails here fails the test"
)]

mod cancelling;
mod errors;
mod network;
mod requests;
mod retries;
mod same_request;
mod streams;
mod trajectories;

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_model::{
    Catalogue, Client, Delta, ModelConfig, ModelError, ProviderConfig, Reply, RetryConfig, Secret,
};
use haft_testkit::{Script, ScriptedServer};
use haft_types::{
    Api, Entry, Layer, LlmMetadata, Message, MessageId, Part, Request, Role, Segment, Timestamp,
    TokenCounter, ToolSet, ToolSpec,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// A counter for tests in which token counts are irrelevant.
struct NoCount;

impl TokenCounter for NoCount {
    fn count_text(&self, _: &str) -> u32 {
        0
    }
}

/// Returns a configuration with almost no wait between attempts, so that no timing decides a test.
fn retry_without_waiting() -> RetryConfig {
    RetryConfig {
        base_delay_ms: 1,
        max_delay_ms: 2,
        ..RetryConfig::default()
    }
}

fn provider(api: Api, base_url: &str) -> ProviderConfig {
    ProviderConfig::new(api, base_url)
}

fn client_of(provider: ProviderConfig, retry: RetryConfig) -> Client {
    let model = ModelConfig {
        max_output_tokens: Some(4096),
        ..ModelConfig::default()
    };
    let catalogue = Catalogue::new(
        [("mock".to_owned(), provider)].into(),
        BTreeMap::from([("mock/test".to_owned(), model)]),
    )
    .unwrap();
    Client::new(
        catalogue.resolve("mock/test").unwrap(),
        Some(Secret::new("sk-test")),
        retry,
    )
    .unwrap()
}

/// Returns a client of a model without a declaration.
fn client_of_undeclared_model(model: &str, provider: ProviderConfig) -> Client {
    let catalogue =
        Catalogue::new([("mock".to_owned(), provider)].into(), BTreeMap::new()).unwrap();
    Client::new(
        catalogue.resolve(&format!("mock/{model}")).unwrap(),
        None,
        retry_without_waiting(),
    )
    .unwrap()
}

fn client(api: Api, server: &ScriptedServer) -> Client {
    client_of(
        provider(api, &server.base_url(api)),
        retry_without_waiting(),
    )
}

async fn serve(script: Script) -> ScriptedServer {
    ScriptedServer::start(script).await.unwrap()
}

fn message(role: Role, content: Vec<Part>) -> Message {
    let id: MessageId = "0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap();
    let at: Timestamp = "2026-11-15T10:00:00Z".parse().unwrap();
    Message::new(id, role, content, at)
}

/// Returns the message that stores `reply`.
fn reply_message(client: &Client, reply: &Reply) -> Message {
    let mut message = message(Role::Assistant, reply.parts.clone());
    message.llm_metadata =
        Some(LlmMetadata::new(client.spec().full_name(), 1, reply.usage, None).into());
    message
}

fn segment(message: Message) -> Segment {
    Segment {
        layer: Layer::History,
        owner: "test",
        entry: Entry::new(message, &NoCount),
        boundary: false,
    }
}

fn tools() -> Arc<ToolSet> {
    let spec = ToolSpec {
        name: "read_file".into(),
        description: "Reads a file.".into(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    };
    ToolSet::new(vec![spec], &NoCount)
}

fn request(messages: impl IntoIterator<Item = Message>) -> Request {
    let mut segments = vec![segment(message(
        Role::System,
        vec![Part::from_text("You are a coding agent.")],
    ))];
    segments[0].boundary = true;
    segments.extend(messages.into_iter().map(segment));
    if let Some(last) = segments.last_mut() {
        last.boundary = true;
    }
    Request {
        segments,
        tools: tools(),
        max_output_tokens: None,
        cache_key: Some("conversation-1".into()),
    }
}

fn hello_request() -> Request {
    request([message(Role::User, vec![Part::from_text("Hello")])])
}

/// Sends the request and returns the deltas, and the reply or the error.
async fn ask(client: &mut Client, request: &Request) -> (Vec<Delta>, Result<Reply, ModelError>) {
    let mut deltas = Vec::new();
    let reply = client
        .stream_reply(request, &CancellationToken::new(), &mut |delta| {
            deltas.push(delta);
        })
        .await;
    (deltas, reply)
}

fn retries(deltas: &[Delta]) -> Vec<(u32, Option<u32>)> {
    deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Retry { attempt, limit, .. } => Some((*attempt, *limit)),
            Delta::Text(_)
            | Delta::Thinking(_)
            | Delta::CallStarted { .. }
            | Delta::CallArguments { .. }
            | Delta::CallFinished { .. }
            | Delta::FieldOmitted { .. } => None,
        })
        .collect()
}

/// Returns the text of the deltas after the last retry.
fn text_after_last_retry(deltas: &[Delta]) -> String {
    let start = deltas
        .iter()
        .rposition(|delta| matches!(delta, Delta::Retry { .. }))
        .map_or(0, |at| at + 1);
    deltas[start..]
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            Delta::Thinking(_)
            | Delta::CallStarted { .. }
            | Delta::CallArguments { .. }
            | Delta::CallFinished { .. }
            | Delta::Retry { .. }
            | Delta::FieldOmitted { .. } => None,
        })
        .collect()
}

fn text_of(reply: &Reply) -> String {
    reply
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_str()),
            Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => None,
        })
        .collect()
}
