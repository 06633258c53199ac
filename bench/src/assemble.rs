//! Compares building the next request of a long conversation incrementally and from scratch: count,
//! hash, assemble and serialize.
//!
//! Conversations have rounds of 50 messages: the user's input, then calls of `read_file` with
//! results of 20 lines. "Next" is the request after one more call and its result; "rebuild" is an
//! equal request built from the bare messages, without any cached state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use haft_context::{
    Account, Memo, Policy, Reminders, Snapshot, SystemInput, assemble, render_system, system_entry,
};
use haft_model::{Client, O200k};
use haft_types::{
    Api, ContentHash, Entry, Envelope, Message, MessageId, Part, Role, Timestamp, ToolCall,
    ToolResult, ToolSet, ToolSpec,
};
use serde_json::json;

use crate::{figures, model};

const ROUND_MESSAGES: usize = 50;

/// A window so large that nothing is pruned: every message is sent.
const WINDOW: u32 = 100_000_000;

/// The parts that all requests of a conversation share.
struct SharedParts {
    policy: Policy,
    system: Arc<Entry>,
    tools: Arc<ToolSet>,
    reminders: Reminders,
}

impl SharedParts {
    fn new() -> anyhow::Result<Self> {
        let spec = ToolSpec {
            name: "read_file".into(),
            description: "Reads a file.".into(),
            parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        };
        Ok(Self {
            policy: Policy::default(),
            system: system_entry(render_system(&SystemInput::default())?, &O200k),
            tools: ToolSet::new(vec![spec], &O200k),
            reminders: Reminders {
                todo: Some("- [ ] read everything\n".repeat(10)),
                ..Reminders::default()
            },
        })
    }

    /// Assembles and serializes a request.
    fn encode_request(
        &self,
        client: &mut Client,
        history: &[Arc<Entry>],
        memo: &Memo,
        last: Option<&Account>,
    ) -> anyhow::Result<(impl AsRef<[u8]> + use<>, Account)> {
        let spec = client.spec().clone();
        let plain = Snapshot::new(
            &spec,
            &self.policy,
            &self.system,
            &self.tools,
            history,
            &O200k,
        );
        let assembly = assemble(&Snapshot {
            reminders: Some(&self.reminders),
            memo: Some(memo),
            last: last.map(|last| &last.sent),
            ..plain
        })?;
        Ok((client.encode_request(&assembly.request), assembly.account))
    }
}

/// Builds message `number` of a conversation. Messages with even numbers answer the call before
/// them.
fn build_message(number: usize) -> Message {
    let id = MessageId::from_hash(ContentHash::from_content(&number.to_le_bytes()));
    let place = number % ROUND_MESSAGES;
    let (role, parts) = if place == 0 {
        (
            Role::User,
            vec![Part::from_text(format!(
                "Please read part {number} and tell me what it does."
            ))],
        )
    } else if place == ROUND_MESSAGES - 1 {
        (
            Role::Assistant,
            vec![Part::from_text(
                "This part reads its input line by line and keeps what it needs. ".repeat(6),
            )],
        )
    } else if place % 2 == 1 {
        let arguments = json!({"path": format!("src/part_{number}.rs")}).to_string();
        let call = ToolCall {
            id: format!("call_{number}"),
            name: "read_file".into(),
            arguments,
            signature: None,
        };
        (
            Role::Assistant,
            vec![
                Part::from_text("I will read the next file."),
                Part::ToolCall(call),
            ],
        )
    } else {
        let lines: Vec<_> = (0..20)
            .map(|line| format!("{line}	let value_{line} = read(input, {number})?;"))
            .collect();
        let lines = lines.join(
            "
",
        );
        let data = json!({"path": format!("src/part_{}.rs", number - 1), "content": lines, "start_line": 1});
        let result = ToolResult {
            tool_call_id: format!("call_{}", number - 1),
            name: "read_file".into(),
            envelope: Envelope::success(lines.clone()).with_data(data),
        };
        (Role::Tool, vec![Part::ToolResult(Box::new(result))])
    };
    Message::new(id, role, parts, Timestamp::UNIX_EPOCH)
}

/// The times of both methods at one conversation length.
struct Times {
    next: f64,
    rebuild: f64,
    body_mb: f64,
}

fn measure_at_length(length: usize, steps: usize, rebuilds: usize) -> anyhow::Result<Times> {
    let fixed = SharedParts::new()?;
    let mut client = model::build_client(Api::Anthropic, WINDOW)?;
    let memo = Memo::default();
    // The start is chosen so that all measured requests follow a tool result.
    let start = length / ROUND_MESSAGES * ROUND_MESSAGES + 3
        - if length.is_multiple_of(ROUND_MESSAGES) {
            ROUND_MESSAGES
        } else {
            0
        };
    let mut history: Vec<_> = (0..start)
        .map(|number| Entry::new(build_message(number), &O200k))
        .collect();
    let (_, mut last) = fixed.encode_request(&mut client, &history, &memo, None)?;
    let mut next: Vec<Duration> = Vec::with_capacity(steps);
    let mut body = None;
    for _ in 0..steps {
        let made = [history.len(), history.len() + 1].map(build_message);
        let begin = Instant::now();
        history.extend(made.map(|message| Entry::new(message, &O200k)));
        let (bytes, account) = fixed.encode_request(&mut client, &history, &memo, Some(&last))?;
        next.push(begin.elapsed());
        (last, body) = (account, Some(bytes));
    }

    let mut rebuild: Vec<Duration> = Vec::with_capacity(rebuilds);
    for _ in 0..rebuilds {
        let messages: Vec<_> = (0..history.len()).map(build_message).collect();
        let mut fresh = model::build_client(Api::Anthropic, WINDOW)?;
        let begin = Instant::now();
        let history: Vec<_> = messages
            .into_iter()
            .map(|message| Entry::new(message, &O200k))
            .collect();
        let (bytes, _) = fixed.encode_request(&mut fresh, &history, &Memo::default(), None)?;
        rebuild.push(begin.elapsed());
        let same = body
            .as_ref()
            .is_some_and(|body| equal_ignoring_marks(bytes.as_ref(), body.as_ref()));
        ensure!(same, "both ways must give the same request");
    }
    Ok(Times {
        next: figures::median_ms(&mut next),
        rebuild: figures::median_ms(&mut rebuild),
        body_mb: body.map_or(0, |body| body.as_ref().len()) as f64 / 1e6,
    })
}

/// Compares two requests, ignoring cache marks, whose positions depend on the previous request.
fn equal_ignoring_marks(one: &[u8], other: &[u8]) -> bool {
    let plain = |body: &[u8]| {
        String::from_utf8_lossy(body).replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    };
    plain(one) == plain(other)
}

pub(crate) fn run_benchmark() -> anyhow::Result<()> {
    figures::print_line(
        "Medians; 10,000 messages are 200 rounds. Every rebuild is compared with the next request, byte by byte.",
    );
    for (length, rebuilds) in [(100, 20), (1_000, 20), (10_000, 7)] {
        let Times {
            next,
            rebuild,
            body_mb,
        } = measure_at_length(length, 60, rebuilds)?;
        let name = |what: &str| format!("{what} at {length} messages");
        figures::print_figure(&name("next request"), next, "ms", None);
        figures::print_figure(&name("full rebuild"), rebuild, "ms", None);
        let goal = (length == 10_000).then_some(5.0);
        figures::print_figure(
            &name("next request, of a rebuild"),
            100.0 * next / rebuild,
            "%",
            goal,
        );
        figures::print_figure(&name("body"), body_mb, "MB", None);
    }
    Ok(())
}
