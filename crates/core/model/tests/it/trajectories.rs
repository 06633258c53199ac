//! Recorded conversations of other agents, rendered with every placement and both views on all four
//! APIs.
//!
//! `HAFT_TRAJECTORIES` names the gzipped file of conversations, one JSON object per line; without
//! it the test prints a notice and ends. Every conversation is assembled with every placement at
//! its last request and at two earlier ones. Sending is slow: the last request and one of the
//! others go to the strict server with one placement, chosen in turn; the last one also in the
//! execute view, which has no placements.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use flate2::read::GzDecoder;
use haft_context::{
    Memo, Placement, Policy, Reminders, Snapshot, SystemInput, View, assemble, render_system,
    system_entry,
};
use haft_types::{
    CacheKind, ContentHash, Entry, Envelope, Message, MessageId, ModelSpec, Part, Request, Role,
    Thinking, Timestamp, ToolCall, ToolResult, ToolSet, ToolSpec,
};
use serde::Deserialize;
use serde_json::json;

use super::same_request::{PLACES, Quarter, Rig, assert_row_has_equal_content};

#[derive(Deserialize)]
struct Conversation {
    id: String,
    messages: Vec<Recorded>,
}

#[derive(Deserialize)]
struct Recorded {
    role: Role,
    content: Option<String>,
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Call>,
    tool_call_id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

impl Recorded {
    fn into_message(self, number: usize) -> Message {
        let mut parts = Vec::new();
        if let Some(text) = self.reasoning_content {
            parts.push(Part::Thinking(Thinking {
                text,
                ..Thinking::default()
            }));
        }
        match (self.role, self.tool_call_id) {
            (Role::Tool, Some(tool_call_id)) => {
                let envelope = Envelope::success(self.content.unwrap_or_default());
                let name = self.name.unwrap_or_else(|| "unknown".into());
                parts.push(Part::ToolResult(Box::new(ToolResult {
                    tool_call_id,
                    name,
                    envelope,
                })));
            }
            _ => parts.extend(self.content.map(Part::from_text)),
        }
        parts.extend(self.tool_calls.into_iter().map(|call| {
            let Function { name, arguments } = call.function;
            Part::ToolCall(ToolCall {
                id: call.id,
                name,
                arguments,
                signature: None,
            })
        }));
        let id = MessageId::from_hash(ContentHash::from_content(&number.to_le_bytes()));
        Message::new(id, self.role, parts, Timestamp::UNIX_EPOCH)
    }
}

/// Returns a tool for every name that is called.
fn tools_of(history: &[Arc<Entry>]) -> Arc<ToolSet> {
    let mut specs: Vec<ToolSpec> = Vec::new();
    for call in history.iter().flat_map(|entry| entry.message.tool_calls()) {
        if specs.iter().all(|spec| spec.name != call.name) {
            let parameters = json!({"type": "object", "properties": {}});
            specs.push(ToolSpec {
                name: call.name.clone(),
                description: "A recorded tool.".into(),
                parameters,
            });
        }
    }
    ToolSet::new(specs, &Quarter)
}

/// Returns the numbers of messages of the last request and of two earlier ones. Requests end where
/// the assistant answers.
fn requests_of(history: &[Arc<Entry>]) -> Vec<usize> {
    let answered = |index: &usize| {
        let before = history[..*index]
            .iter()
            .rev()
            .find(|entry| entry.message.role != Role::System);
        before.is_some_and(|entry| matches!(entry.message.role, Role::User | Role::Tool))
    };
    let ends = (1..=history.len())
        .filter(|end| {
            history
                .get(*end)
                .is_none_or(|next| next.message.role == Role::Assistant)
        })
        .filter(answered);
    let ends: Vec<_> = ends.collect();
    let mut chosen: Vec<_> = [
        ends.len() / 3,
        2 * ends.len() / 3,
        ends.len().saturating_sub(1),
    ]
    .iter()
    .filter_map(|at| ends.get(*at))
    .copied()
    .collect();
    chosen.dedup();
    chosen
}

/// Everything a request of one conversation is built from.
struct Replay {
    history: Vec<Arc<Entry>>,
    tools: Arc<ToolSet>,
    system: Arc<Entry>,
    reminders: Reminders,
    memo: Memo,
}

impl Replay {
    fn new(conversation: Conversation) -> Self {
        let messages = conversation.messages.into_iter().enumerate();
        let history: Vec<_> = messages
            .map(|(number, one)| Entry::new(one.into_message(number), &Quarter))
            .collect();
        let tools = tools_of(&history);
        let input = SystemInput {
            tools: &tools.specs,
            ..SystemInput::default()
        };
        let system = system_entry(render_system(&input).unwrap(), &Quarter);
        let reminders = Reminders {
            role: Some("You are careful.".into()),
            todo: Some("- [ ] one".into()),
            ..Reminders::default()
        };
        Self {
            history,
            tools,
            system,
            reminders,
            memo: Memo::default(),
        }
    }

    fn request(
        &self,
        end: usize,
        place: Placement,
        view: View,
        model: &ModelSpec,
    ) -> Result<Request, String> {
        let policy = Policy {
            reminders: place,
            view,
            ..Policy::default()
        };
        let input = SystemInput {
            tools: &self.tools.specs,
            ..SystemInput::default()
        };
        let plain = Snapshot::new(
            model,
            &policy,
            &self.system,
            &self.tools,
            &self.history[..end],
            &Quarter,
        );
        let full = Snapshot {
            system_input: Some(&input),
            reminders: Some(&self.reminders),
            memo: Some(&self.memo),
            ..plain
        };
        assemble(&full)
            .map(|assembly| assembly.request)
            .map_err(|error| format!("{error:?}"))
    }
}

#[test]
fn recorded_conversations_render_with_every_placement() {
    // Set by the person who runs the tests; the conversations are not part of this repository.
    let Some(path) = std::env::var_os("HAFT_TRAJECTORIES") else {
        return skipped();
    };
    let file = File::open(Path::new(&path))
        .unwrap_or_else(|error| panic!("HAFT_TRAJECTORIES={path:?}: {error}"));
    let mut conversations = 0;
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let conversation: Conversation = serde_json::from_str(&line.unwrap()).unwrap();
        let id = conversation.id.clone();
        let replay = Replay::new(conversation);
        let mut rig = Rig::new(CacheKind::Automatic);
        let mut sent = Vec::new();
        let ends = requests_of(&replay.history);
        for (turn, end) in ends.iter().copied().enumerate() {
            let is_last = turn + 1 == ends.len();
            let chosen = PLACES[(conversations + turn) % PLACES.len()];
            for place in PLACES {
                let what = format!("{id}, {end} messages, {place}");
                let build = |view: View| {
                    let what = &what;
                    let replay = &replay;
                    move |model: &ModelSpec| {
                        replay
                            .request(end, place, view, model)
                            .unwrap_or_else(|error| panic!("{what}, {view:?}: {error}"))
                    }
                };
                let send = place == chosen && (is_last || turn == conversations % 2);
                if !send {
                    rig.only_assemble(build(View::Layered));
                    continue;
                }
                rig.send(&what, build(View::Layered));
                sent.push((what.clone(), View::Layered));
                if is_last {
                    rig.send(&what, build(View::Execute));
                    sent.push((what.clone(), View::Execute));
                }
            }
        }
        for ((what, view), row) in sent.iter().zip(rig.seen()) {
            assert_row_has_equal_content(what, *view, &row);
        }
        conversations += 1;
    }
    assert!(conversations > 0, "the file holds no conversation");
}

#[expect(
    clippy::print_stderr,
    reason = "whoever runs the tests should know what was not tested"
)]
fn skipped() {
    eprintln!("skipped: HAFT_TRAJECTORIES is not set, recorded conversations were not rendered");
}
