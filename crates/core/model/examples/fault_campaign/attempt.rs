//! One case: a server that fails as told, a client that asks it, and an executor that counts what
//! it is given.

use std::collections::BTreeMap;
use std::error::Error;

use haft_model::{
    Catalogue, Client, Delta, ModelConfig, ModelError, ProviderConfig, Reply, RetryConfig,
};
use haft_testkit::{Reply as Scripted, Script, ScriptCall, ScriptedServer};
use haft_types::{
    Api, Entry, Layer, Message, MessageId, Part, Request, Role, Segment, StopReason, Timestamp,
    TokenCounter, ToolCall, ToolSet, Usage,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::table::{Age, Case, Outcome};

/// The call of the reply that follows a failed one.
const AGAIN: &str = "call_again";

/// What a reply is compared by: its parts, and why it stopped. Usage is not: it may be what the
/// fault is in.
pub(crate) type Baseline = (Vec<Part>, StopReason);

/// Counts are of no interest here.
struct NoCount;

impl TokenCounter for NoCount {
    fn count_text(&self, _: &str) -> u32 {
        0
    }
}

/// Runs what the gate lets pass and keeps book.
#[derive(Debug, Default)]
struct Executor {
    ran: BTreeMap<String, u32>,
}

impl Executor {
    /// The engine's rule: calls of a reply that ended, the last one not if the reply was cut by
    /// length, and only if the arguments are an object.
    fn take(&mut self, reply: &Reply) {
        for id in runnable(&reply.parts, &reply.stop) {
            *self.ran.entry(id).or_default() += 1;
        }
    }
}

fn runnable(parts: &[Part], stop: &StopReason) -> Vec<String> {
    let is_call = |part: &Part| -> Option<ToolCall> {
        match part {
            Part::ToolCall(call) => Some(call.clone()),
            Part::Text { .. } | Part::Thinking(_) | Part::ToolResult(_) | Part::Image(_) => None,
        }
    };
    let cut = *stop == StopReason::Length;
    let last = parts.len().saturating_sub(1);
    let kept = parts
        .iter()
        .enumerate()
        .filter(|(at, _)| !(cut && *at == last));
    let calls = kept.filter_map(|(_, part)| is_call(part));
    calls
        .filter(|call| serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok())
        .map(|call| call.id)
        .collect()
}

/// The reply to a stream that nothing was done to.
pub(crate) async fn baseline(api: Api, reply: Scripted) -> Result<Baseline, Box<dyn Error>> {
    let server = ScriptedServer::start(Script::replies([reply])?).await?;
    let (_, reply) = ask(&mut client(api, &server)?, &request()?).await;
    let reply = reply?;
    Ok((reply.parts, reply.stop))
}

/// Tries a case; the error says what was not as the table has it.
pub(crate) async fn attempt(case: &Case, baseline: &Baseline) -> Result<(), String> {
    let failed = |error: Box<dyn Error>| format!("the case could not be tried: {error}");
    let again =
        Scripted::calls([ScriptCall::new("read_file", json!({ "path": "a" })).with_id(AGAIN)]);
    let before = (case.age == Age::Later).then(|| Scripted::text("Before."));
    let script = Script::replies(before.into_iter().chain([case.reply.clone(), again]));
    let server = ScriptedServer::start(script.map_err(|error| failed(error.into()))?).await;
    let server = server.map_err(|error| failed(error.into()))?;
    let mut client = client(case.api, &server).map_err(failed)?;
    let request = request().map_err(failed)?;
    if case.age == Age::Later {
        ask(&mut client, &request)
            .await
            .1
            .map_err(|error| format!("the reply before the fault: {error}"))?;
    }
    let asked_before = server.requests().len();
    let (waits, reply) = ask(&mut client, &request).await;
    let asked = server.requests().len() - asked_before;
    let mut executor = Executor::default();
    if let Ok(reply) = &reply {
        executor.take(reply);
    }
    judge(
        case,
        baseline,
        &Seen {
            asked,
            waits,
            reply,
            executor,
        },
    )
}

struct Seen {
    asked: usize,
    waits: Vec<u64>,
    reply: Result<Reply, ModelError>,
    executor: Executor,
}

fn judge(case: &Case, (parts, stop): &Baseline, seen: &Seen) -> Result<(), String> {
    let told = match &seen.reply {
        Ok(reply) => format!(
            "a reply ({:?}) with {} parts",
            reply.stop,
            reply.parts.len()
        ),
        Err(error) => format!("{}: {error}", error.code()),
    };
    let wrong = |what: &str| {
        Err(format!(
            "{what}: {} requests, ran {:?}, {told}; expected {:?}",
            seen.asked, seen.executor.ran, case.outcome
        ))
    };
    if seen.executor.ran.values().any(|times| *times > 1) {
        return wrong("a call ran twice");
    }
    if let Ok(Reply { usage, .. }) = &seen.reply
        && !is_credible(usage)
    {
        return wrong("a count that is none");
    }
    let ran: Vec<&str> = seen.executor.ran.keys().map(String::as_str).collect();
    let mut expected = runnable(parts, stop);
    expected.sort();
    let held = match (case.outcome, &seen.reply) {
        (Outcome::Whole, Ok(reply)) => {
            seen.asked == 1 && reply.parts == *parts && reply.stop == *stop && ran == expected
        }
        (Outcome::Altered, Ok(reply)) => {
            seen.asked == 1
                && reply.stop == *stop
                && ran
                    .iter()
                    .all(|id| expected.iter().any(|other| other == id))
        }
        (Outcome::Again, Ok(_)) => {
            let waited = case.wait_ms.is_none_or(|wait| seen.waits == [wait]);
            seen.asked == 2 && seen.waits.len() == 1 && ran == [AGAIN] && waited
        }
        (Outcome::Refused(code), Err(error)) => {
            seen.asked == 1 && error.code() == code && seen.waits.is_empty()
        }
        (Outcome::Whole | Outcome::Altered | Outcome::Again, Err(_))
        | (Outcome::Refused(_), Ok(_)) => false,
    };
    if held {
        Ok(())
    } else {
        wrong("another outcome")
    }
}

fn is_credible(usage: &Usage) -> bool {
    [
        usage.input,
        usage.cached_input,
        usage.cache_write,
        usage.output,
    ]
    .iter()
    .all(|count| *count < 10_u64.pow(13))
}

fn client(api: Api, server: &ScriptedServer) -> Result<Client, Box<dyn Error>> {
    let provider = ProviderConfig::new(api, server.base_url(api));
    let model = ModelConfig {
        max_output_tokens: Some(4096),
        ..ModelConfig::default()
    };
    let catalogue = Catalogue::new(
        [("mock".to_owned(), provider)].into(),
        [("mock/m".to_owned(), model)].into(),
    )?;
    let retry = RetryConfig {
        attempts: 3,
        base_delay_ms: 1,
        max_delay_ms: 2,
        first_byte_timeout_s: 2,
        idle_timeout_s: 2,
        ..RetryConfig::default()
    };
    Ok(Client::new(catalogue.resolve("mock/m")?, None, retry)?)
}

fn request() -> Result<Request, Box<dyn Error>> {
    let (id, at): (MessageId, Timestamp) = (
        "0a1b2c3d-0000-4000-8000-000000000000".parse()?,
        "2026-11-15T10:00:00Z".parse()?,
    );
    let segment = |role, text: &str| Segment {
        layer: Layer::History,
        owner: "campaign",
        entry: Entry::new(
            Message::new(id, role, vec![Part::from_text(text)], at),
            &NoCount,
        ),
        boundary: false,
    };
    let segments = vec![
        segment(Role::System, "You are a coding agent."),
        segment(Role::User, "Go."),
    ];
    Ok(Request {
        segments,
        tools: ToolSet::new(Vec::new(), &NoCount),
        max_output_tokens: None,
        cache_key: None,
    })
}

/// The waits before retries, and what came in the end.
async fn ask(client: &mut Client, request: &Request) -> (Vec<u64>, Result<Reply, ModelError>) {
    let mut waits = Vec::new();
    let mut sink = |delta: Delta| match delta {
        Delta::Retry { delay_ms, .. } => waits.push(delay_ms),
        Delta::Text(_)
        | Delta::Thinking(_)
        | Delta::CallStarted { .. }
        | Delta::CallArguments { .. }
        | Delta::CallFinished { .. }
        | Delta::FieldOmitted { .. } => {}
    };
    let reply = client
        .stream_reply(request, &CancellationToken::new(), &mut sink)
        .await;
    (waits, reply)
}
