//! A recorded conversation, built request by request under another policy. No model is called.
//!
//! Every request is what [`assemble`] makes of the messages there were, and carries over what it
//! carries over; the cache is [simulated](CacheSimulator). The same recording and policy give the
//! same figures and the same bytes; under the policy it was recorded with they are the recorded
//! ones. Where the window fills, older rounds and steps are [archived](archive) as a session would
//! archive them, with a summary made without a model.

mod archive;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft_context::{
    Account, CachePiece, CacheSimulator, Carried, Cause, Cleared, CompactionPlan, Documents, Memo,
    OpenWork, Reminders, Sent, Snapshot, SystemInput, assemble, is_cold, ledger, missing, pieces,
};
use haft_types::{Entry, Layer, ModelSpec, Part, Request, Role, TokenCounter, ToolSet, Usage};
use serde_json::Value;

use archive::Archives;

use crate::regret::Regrets;
use crate::variant::Variant;

/// A request of the recording: how many messages there were, and when it was sent, counted from any
/// beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedStep {
    /// The messages of the history that it could hold.
    pub messages: usize,
    /// When it was sent.
    pub at: Duration,
}

/// What is sent besides the conversation.
#[derive(Clone)]
pub struct RequestSurroundings<'a> {
    /// The system message.
    pub system: &'a Arc<Entry>,
    /// What it was rendered from, where it may be shortened.
    pub system_input: Option<&'a SystemInput<'a>>,
    /// The tools offered.
    pub tools: &'a Arc<ToolSet>,
    /// Rules and other standing texts.
    pub documents: Option<&'a Documents>,
    /// The reminders, where there are any.
    pub reminders: Option<Reminders>,
    /// Names the conversation to caches that route by key.
    pub cache_key: Option<&'a str>,
}

/// A recorded conversation.
#[derive(Clone, Copy)]
pub struct Recording<'a> {
    /// Every message.
    pub history: &'a [Arc<Entry>],
    /// When the model was asked.
    pub steps: &'a [RecordedStep],
    /// What was sent besides at each step, by its number.
    pub beside: &'a dyn Fn(usize) -> RequestSurroundings<'a>,
}

/// One request of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replayed {
    /// Its input by class, as the simulated cache has it.
    pub usage: Usage,
    /// What the input costs in USD; absent without prices.
    pub cost: Option<f64>,
    /// Why it is no extension of the request before, if it is none.
    pub cause: Option<Cause>,
    /// Tokens that pruning left out.
    pub pruned_tokens: u64,
    /// How many messages lie behind that reminder whose newest copy is furthest from the end;
    /// absent without reminders.
    pub reminder_distance: Option<usize>,
}

/// A conversation under another policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// Its requests, those for summaries among them, but for those that could not be made.
    pub requests: Vec<Replayed>,
    /// Requests that would not have fitted.
    pub too_large: usize,
    /// How often something was asked for again while its text was left out.
    pub regret: usize,
    /// The last request that could be made.
    pub last: Option<Request>,
    /// How many messages of the recording there were when it was made.
    pub last_messages: usize,
    /// How often older rounds or steps were archived. Each time a summary was asked for, which is
    /// one of the requests.
    pub archives: usize,
}

/// How much of what must be kept a request holds, letter for letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Things the request holds.
    pub kept: usize,
    /// Things that must be kept.
    pub all: usize,
}

impl Replay {
    /// All input, by class.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.requests
            .iter()
            .for_each(|request| sum += request.usage);
        sum
    }

    /// What the input costs in USD; absent without prices.
    pub fn cost(&self) -> Option<f64> {
        self.requests.iter().map(|request| request.cost).sum()
    }

    /// The tokens of the largest request.
    pub fn peak(&self) -> u64 {
        self.requests
            .iter()
            .map(|request| request.usage.all_input())
            .max()
            .unwrap_or(0)
    }

    /// How much of what must be kept the last request holds, of what had been said when it was
    /// made.
    pub fn coverage(&self, history: &[Arc<Entry>]) -> Coverage {
        let said = history.get(..self.last_messages).unwrap_or(history);
        self.last
            .as_ref()
            .map(|last| coverage(said, last))
            .unwrap_or_default()
    }

    /// How many requests broke the prefix.
    pub fn breaks(&self) -> usize {
        self.requests
            .iter()
            .filter(|request| request.cause.is_some())
            .count()
    }
}

/// How much of what these messages say must be kept a request holds.
pub fn coverage(history: &[Arc<Entry>], request: &Request) -> Coverage {
    let times = || history.iter().map(|entry| entry.message.created_at);
    let (Some(first), Some(from), Some(to)) = (history.first(), times().min(), times().max())
    else {
        return Coverage::default();
    };
    let first_kept = first.message.message_id;
    let plan = CompactionPlan {
        messages: history.to_vec(),
        rounds: 0,
        steps: 0,
        first_kept,
        users_from: None,
        from,
        to,
    };
    let ledger = ledger(&plan, OpenWork::default());
    let mut text = String::new();
    for part in request
        .segments
        .iter()
        .flat_map(|segment| &segment.entry.message.content)
    {
        let piece = match part {
            Part::Text { text, .. } => text,
            // A command is asked for as it was meant, not with the escapes of JSON.
            Part::ToolCall(call) => match serde_json::from_str(&call.arguments) {
                Ok(arguments) => &strings(&arguments),
                Err(_) => &call.arguments,
            },
            Part::ToolResult(result) => &result.envelope.text,
            Part::Thinking(_) | Part::Image(_) => continue,
        };
        text.push_str(piece);
        text.push('\n');
    }
    Coverage {
        kept: ledger.len() - missing(&ledger, &text).len(),
        all: ledger.len(),
    }
}

/// The texts of a JSON value, a line each.
fn strings(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(values) => values.iter().map(strings).collect(),
        Value::Object(fields) => fields.values().map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// Replays a recording. `see` is shown every request as it would be sent, with its step; requests
/// for summaries are not shown.
pub fn replay(
    recording: &Recording<'_>,
    variant: &Variant,
    model: &ModelSpec,
    counter: &dyn TokenCounter,
    mut see: impl FnMut(usize, &Request),
) -> Replay {
    let policy = &variant.policy;
    let mut replay = Replay::default();
    let mut cache = CacheSimulator::new(&model.cache);
    let mut carry = Carry::default();
    let mut regrets = Regrets::default();
    let mut archives = Archives::new(recording.history, variant);
    let memo = Memo::default();
    let mut seen = 0;
    for (number, step) in recording.steps.iter().enumerate() {
        let end = step.messages.min(recording.history.len());
        let new = recording.history.get(seen..end).unwrap_or_default();
        replay.regret += regrets.take(new, carry.cleared.as_ref());
        seen = seen.max(end);
        let idle = carry.at.map(|at| step.at.saturating_sub(at));
        let is_cold = is_cold(model, carry.last.as_ref(), idle);
        if let Some(archived) = archives.archive(end, is_cold, policy, model, counter) {
            let usage = Usage {
                input: archived.asked_tokens,
                ..Usage::default()
            };
            replay.requests.push(Replayed {
                usage,
                cost: model.price.map(|price| price.cost(usage).total),
                cause: None,
                pruned_tokens: 0,
                reminder_distance: None,
            });
            replay.archives += 1;
            regrets.archived(archived.first_kept);
        }
        let history = archives.history(end);
        let beside = (recording.beside)(number);
        let plain = Snapshot::new(
            model,
            policy,
            beside.system,
            beside.tools,
            &history,
            counter,
        );
        let assembly = assemble(&Snapshot {
            system_input: beside.system_input,
            documents: beside.documents,
            reminders: beside.reminders.as_ref().filter(|_| variant.reminders),
            cleared: carry.cleared.as_ref(),
            carried: carry.carried.as_ref(),
            last: carry.last.as_ref(),
            idle,
            cache_key: beside.cache_key,
            memo: Some(&memo),
            ..plain
        });
        let Ok(assembly) = assembly else {
            replay.too_large += 1;
            continue;
        };
        see(number, &assembly.request);
        let usage = cache.send(step.at, &pieces(&assembly.request, model.tokenizer_factor));
        let reply = recording
            .history
            .get(end)
            .filter(|entry| entry.message.role == Role::Assistant);
        let reply = reply.map(|reply| CachePiece::reply(reply, model));
        if let Some(reply) = &reply {
            cache.reply(step.at, reply);
        }
        archives.sent(Usage {
            output: reply.map_or(0, |reply| reply.tokens),
            ..usage
        });
        replay.requests.push(Replayed {
            usage,
            cost: model.price.map(|price| price.cost(usage).total),
            cause: assembly
                .account
                .prefix
                .as_ref()
                .and_then(|prefix| prefix.broken.as_ref())
                .map(|one| one.cause),
            pruned_tokens: assembly.account.pruned_tokens,
            reminder_distance: reminder_distance(&assembly.request),
        });
        carry.take(assembly.account, step.at);
        replay.last = Some(assembly.request);
        replay.last_messages = end;
    }
    replay
}

/// How many messages lie behind the newest copy of that kind of reminder that is furthest from the
/// end.
fn reminder_distance(request: &Request) -> Option<usize> {
    let mut newest: HashMap<&str, usize> = HashMap::new();
    for (behind, segment) in request.segments.iter().rev().enumerate() {
        if segment.layer == Layer::Reminders {
            newest.entry(segment.owner).or_insert(behind);
        }
    }
    newest.into_values().max()
}

/// What goes from one request to the next.
#[derive(Default)]
struct Carry {
    last: Option<Sent>,
    cleared: Option<Cleared>,
    carried: Option<Carried>,
    at: Option<Duration>,
}

impl Carry {
    fn take(&mut self, account: Account, at: Duration) {
        self.cleared = account.cleared.or(self.cleared.take());
        self.carried = account.carried.or(self.carried.take());
        self.last = Some(account.sent);
        self.at = Some(at);
    }
}

#[cfg(test)]
mod tests;
