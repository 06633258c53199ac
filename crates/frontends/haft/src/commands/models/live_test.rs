//! `haft models test`: tests whether a model answers, how fast, and which token counts it reports.

use std::fmt::Write as _;
use std::time::Duration;

use haft_agent::RandomIds;
use haft_model::{Client, ModelError, O200k, Reply, RetryConfig};
use haft_types::{
    Cost, Entry, IdSource, Layer, Message, ModelSpec, Request, Role, Segment, Timestamp,
    TokenCounter, ToolSet, Usage,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::format_number;
use crate::commands::models::ModelTestArgs;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::{output, wiring};

/// The token limit of a reply: enough for one word, and for a model that reasons first.
const MAX_OUTPUT_TOKENS: u32 = 1_024;
/// The time limit for the whole test, during which the user waits.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);

/// The result of testing a model.
struct ModelTest {
    spec: ModelSpec,
    url: String,
    /// The number of models the provider lists and whether this model is among them, or the error
    /// of the listing.
    listed: Result<(usize, bool), String>,
    replies: Vec<Reply>,
    failure: Option<ModelError>,
}

pub(super) fn run(haft: &Haft, args: &ModelTestArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.output.common)?;
    let main = || haft_agent::configured_model(&settings.config);
    let name = args.name.clone().or_else(main);
    let name = name.ok_or_else(|| usage_error(text!("models-which")))?;
    let declared = settings.resolve_model(&name)?;
    let key = settings.read_key(&declared)?;
    let spec = declared.spec.clone();
    let url = declared.provider.base_url.clone();
    // A test reports the first failure instead of retrying.
    let retry = RetryConfig {
        attempts: 0,
        ..settings.config.retry.clone()
    };
    let client =
        Client::new(declared, key, retry).map_err(|error| usage_error(error.to_string()))?;
    let test = wiring::build_runtime()?.block_on(run_requests(client, spec, url, args.cache));
    if args.output.json {
        output::print_json(&test_to_json(&test))?;
    } else {
        output::print_text(&test_to_text(&test))?;
    }
    Ok(match &test.failure {
        None => ProcessExit::Completed,
        // A provider that answers is configured correctly, even if it refuses the request.
        Some(failure) if failure.is_setup_failure() && !failure.ended_with_error_status() => {
            ProcessExit::Usage
        }
        Some(_) => ProcessExit::Failed,
    })
}

/// Sends a tiny request and discards the reply.
pub(super) async fn send_test_request(
    mut client: Client,
    spec: &ModelSpec,
) -> Result<(), ModelError> {
    client
        .stream_reply(
            &build_test_request(spec, 0),
            &cancel_after_timeout(),
            &mut |_| {},
        )
        .await
        .map(drop)
}

/// Returns a token that is canceled after [`TEST_TIMEOUT`].
fn cancel_after_timeout() -> CancellationToken {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(TEST_TIMEOUT).await;
        stop.cancel();
    });
    cancel
}

async fn run_requests(mut client: Client, spec: ModelSpec, url: String, cache: bool) -> ModelTest {
    let cancel = cancel_after_timeout();
    let listed = client.list_models(&cancel).await;
    let listed = listed.map(|names| {
        (
            names.len(),
            names
                .iter()
                .any(|name| matches_model_name(name, &spec.name)),
        )
    });
    let listed = listed.map_err(|error| error.to_string());
    let padding = if cache {
        spec.cache.min + spec.cache.min / 4 + 64
    } else {
        0
    };
    let request = build_test_request(&spec, padding);
    let mut outcome = ModelTest {
        spec,
        url,
        listed,
        replies: Vec::new(),
        failure: None,
    };
    for _ in 0..if cache { 2 } else { 1 } {
        match client.stream_reply(&request, &cancel, &mut |_| {}).await {
            Ok(reply) => outcome.replies.push(reply),
            Err(failure) => {
                outcome.failure = Some(failure);
                break;
            }
        }
    }
    outcome
}

/// True if a name in a provider's list stands for the model `name`. Some providers list names with
/// a prefix such as `models/`.
fn matches_model_name(listed: &str, name: &str) -> bool {
    listed == name
        || listed
            .strip_suffix(name)
            .is_some_and(|before| before.ends_with('/'))
}

/// Builds a request for one word. The instructions are filled up to about `padding` tokens and
/// begin with a random id, so that they are not in the provider's cache yet.
fn build_test_request(spec: &ModelSpec, padding: u32) -> Request {
    let ids = RandomIds;
    let mut instructions = "Answer with the word OK and nothing else.".to_owned();
    if padding > 0 {
        let _ = write!(
            instructions,
            "\n\nIgnore what follows. It is {}.",
            ids.new_uuid()
        );
        let mut line = 0;
        while O200k.count_text(&instructions) < padding {
            for _ in 0..50 {
                line += 1;
                let _ = write!(instructions, "\nLine {line} says nothing of importance.");
            }
        }
    }
    let message = |role, text: &str| {
        Message::from_text(ids.new_message_id(), role, text, Timestamp::UNIX_EPOCH)
    };
    let segment = |layer, owner, message| Segment {
        layer,
        owner,
        entry: Entry::new(message, &O200k),
        boundary: true,
    };
    Request {
        segments: vec![
            segment(
                Layer::System,
                "system",
                message(Role::System, &instructions),
            ),
            segment(
                Layer::Current,
                "test",
                message(Role::User, "Are you there?"),
            ),
        ],
        tools: ToolSet::new(Vec::new(), &O200k),
        max_output_tokens: Some(
            spec.max_output_tokens
                .unwrap_or(MAX_OUTPUT_TOKENS)
                .min(MAX_OUTPUT_TOKENS),
        ),
        cache_key: Some(ids.new_uuid().to_string()),
    }
}

impl ModelTest {
    fn reply_to_json(&self, reply: &Reply) -> Value {
        json!({
            "time_to_first_token_ms": reply.time_to_first_token.as_millis() as u64,
            "duration_ms": reply.duration.as_millis() as u64,
            "text": reply_text(reply),
            "usage": reply.usage,
            "cost": self.cost(reply.usage),
        })
    }

    fn cost(&self, usage: Usage) -> Option<Cost> {
        self.spec.price.map(|price| price.request_cost(usage))
    }
}

fn reply_text(reply: &Reply) -> String {
    let text = reply.parts.iter().filter_map(|part| match part {
        haft_types::Part::Text { text, .. } => Some(text.as_str()),
        haft_types::Part::Thinking(_)
        | haft_types::Part::ToolCall(_)
        | haft_types::Part::ToolResult(_)
        | haft_types::Part::Image(_) => None,
    });
    text.collect::<String>().trim().to_owned()
}

fn test_to_json(outcome: &ModelTest) -> Value {
    let listed = match &outcome.listed {
        Ok((models, found)) => json!({"models": models, "found": found}),
        Err(problem) => json!({"error": problem}),
    };
    let failure = outcome.failure.as_ref();
    json!({
        "name": outcome.spec.full_name(),
        "ok": failure.is_none(),
        "base_url": outcome.url,
        "listed": listed,
        "replies": outcome.replies.iter().map(|reply| outcome.reply_to_json(reply)).collect::<Vec<_>>(),
        "cache": outcome.spec.cache,
        "error": failure.map(|failure| json!({"code": failure.code(), "message": failure.to_string()})),
    })
}

fn test_to_text(outcome: &ModelTest) -> String {
    let spec = &outcome.spec;
    let mut lines = vec![text!(
        "models-test-heading",
        model = spec.full_name(),
        api = spec.api,
        url = outcome.url
    )];
    lines.push(match &outcome.listed {
        Ok((models, true)) => text!("models-test-listed", models),
        Ok((models, false)) => text!("models-test-unlisted", models),
        Err(problem) => text!("models-test-no-list", problem),
    });
    for reply in &outcome.replies {
        let usage = reply.usage;
        lines.push(text!(
            "models-test-answer",
            reply = format_args!("{:?}", reply_text(reply)),
            total = reply.duration.as_millis(),
            first = reply.time_to_first_token.as_millis()
        ));
        let cost = outcome.cost(usage).map_or_else(String::new, |cost| {
            format!(", ${}", format_number(cost.total))
        });
        lines.push(if usage.all_input() == 0 {
            text!("models-test-no-usage").to_owned()
        } else {
            text!(
                "models-test-usage",
                input = usage.input,
                cached_input = usage.cached_input,
                cache_write = usage.cache_write,
                output = usage.output,
                cost
            )
        });
    }
    lines.push(describe_cache(outcome));
    if let Some(failure) = &outcome.failure {
        lines.push(text!(
            "models-test-failed",
            failure = output::localize_text(failure)
        ));
    }
    lines.join("\n") + "\n"
}

fn describe_cache(outcome: &ModelTest) -> String {
    let cache = &outcome.spec.cache;
    let rule = serde_json::to_value(cache.rule).ok();
    let rule = rule
        .as_ref()
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    match outcome.replies.as_slice() {
        [_, second] if second.usage.cached_input > 0 => {
            text!(
                "models-test-cache-works",
                tokens = second.usage.cached_input
            )
        }
        [_, _] => text!("models-test-cache-unused").to_owned(),
        _ => text!(
            "models-test-cache-declared",
            rule,
            tokens = cache.min,
            ttl = cache.ttl
        ),
    }
}
