//! Replays a recorded conversation request by request under another policy. No model is called.
//!
//! Every request is built by [`assemble`] from the messages recorded so far and the state of the
//! previous request; the cache is [simulated](CacheSimulator). Equal recordings and policies give
//! equal figures and bytes; under the policy of the recording, the bytes are the recorded ones.
//! When the window fills, older rounds and steps are [archived](archive) as in a session, with a
//! summary made without a model.

mod archive;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use haft_context::{
    Account, CachePiece, CacheSimulator, Carried, Cause, Cleared, CompactionPlan, Documents, Memo,
    OpenWork, Reminders, Sent, Snapshot, SystemInput, assemble, collect_ledger, find_missing,
    is_cold, request_pieces,
};
use haft_types::{Entry, Layer, ModelSpec, Part, Request, Role, TokenCounter, ToolSet, Usage};
use serde_json::Value;

use archive::Archives;

use crate::regret::Regrets;
use crate::variant::Variant;
use crate::visibility::{seen_edits, unseen_results};

/// A recorded request: its time, and the number of messages that were recorded before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedStep {
    /// The number of messages recorded before the request, which is the maximum number of messages
    /// that the request could contain.
    pub messages: usize,
    /// The time at which the request was sent, measured from an arbitrary start.
    pub at: Duration,
}

/// The parts that a replayed request contains besides the conversation's messages.
#[derive(Clone)]
pub struct RequestSurroundings<'a> {
    /// The system message of the request.
    pub system: &'a Arc<Entry>,
    /// The input from which the system message was rendered. Set if the message may be shortened.
    pub system_input: Option<&'a SystemInput<'a>>,
    /// The tools that the request offers to the model.
    pub tools: &'a Arc<ToolSet>,
    /// The rules and other standing texts to send.
    pub documents: Option<&'a Documents>,
    /// The reminders to send, or `None` to send none.
    pub reminders: Option<Reminders>,
    /// The cache key of the conversation, for providers that route requests by key.
    pub cache_key: Option<&'a str>,
}

/// A recorded conversation, as [`replay_recording`] reads it.
#[derive(Clone, Copy)]
pub struct Recording<'a> {
    /// All messages of the conversation, oldest first.
    pub history: &'a [Arc<Entry>],
    /// The requests that were sent to the model.
    pub steps: &'a [RecordedStep],
    /// A function that takes the number of a step and returns the parts that its request contains
    /// besides the messages.
    pub beside: &'a dyn Fn(usize) -> RequestSurroundings<'a>,
}

/// The usage, the cost and other figures of one replayed request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replayed {
    /// The input tokens by class, according to the simulated cache.
    pub usage: Usage,
    /// The cost of the input in USD; `None` if the model has no prices.
    pub cost: Option<f64>,
    /// The reason why the request does not extend the previous one; `None` if it does extend it.
    pub cause: Option<Cause>,
    /// The number of tokens that pruning left out of the request.
    pub pruned_tokens: u64,
    /// The number of messages after the newest copy of a reminder. If there are several kinds of
    /// reminders, the largest of these numbers counts. `None` without reminders.
    pub reminder_distance: Option<usize>,
}

/// The result of replaying one conversation under a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// The requests that could be built, including those for summaries.
    pub requests: Vec<Replayed>,
    /// The number of requests that did not fit the model's context window.
    pub too_large: usize,
    /// The number of tool calls that requested content again because a request had left it out.
    pub regret: usize,
    /// The number of recorded tool calls that replace text.
    pub edits: usize,
    /// The number of edits that replace text which occurs only in messages left out of the request.
    pub blind_edits: usize,
    /// The number of tool results that were left out or shortened before the model could answer
    /// them.
    pub unseen_results: usize,
    /// The additional cost of sending omitted text again, in USD: one additional request for each
    /// regret and each blind edit, and the repeated text in all later requests until old results
    /// are cleared again. `None` if the model has no prices.
    pub reread_cost: Option<f64>,
    /// The last request that could be built.
    pub last: Option<Request>,
    /// The number of recorded messages that precede the last request.
    pub last_messages: usize,
    /// The number of times that older rounds or steps were archived. Each archive needs a summary
    /// request, which is included in `requests`.
    pub archives: usize,
}

/// The number of must-keep facts that a request contains word for word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The number of facts that the request contains.
    pub kept: usize,
    /// The number of facts that must be kept.
    pub all: usize,
}

impl Replay {
    /// Returns the input tokens of all requests, by class.
    pub fn total_usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.requests
            .iter()
            .for_each(|request| sum += request.usage);
        sum
    }

    /// Returns the cost of all input in USD, or `None` if the model has no prices.
    pub fn total_cost(&self) -> Option<f64> {
        self.requests.iter().map(|request| request.cost).sum()
    }

    /// Returns the cost of all input in USD, including the cost of sending omitted text again.
    pub fn cost_with_rereads(&self) -> Option<f64> {
        Some(self.total_cost()? + self.reread_cost.unwrap_or_default())
    }

    /// Returns the input tokens of the largest request.
    pub fn peak_tokens(&self) -> u64 {
        self.requests
            .iter()
            .map(|request| request.usage.all_input())
            .max()
            .unwrap_or(0)
    }

    /// Returns the number of must-keep facts in the messages recorded before the last request, and
    /// how many of them the request contains.
    pub fn final_coverage(&self, history: &[Arc<Entry>]) -> Coverage {
        let said = history.get(..self.last_messages).unwrap_or(history);
        self.last
            .as_ref()
            .map(|last| measure_coverage(said, last))
            .unwrap_or_default()
    }

    /// Returns the number of requests that did not extend the previous request.
    pub fn count_breaks(&self) -> usize {
        self.requests
            .iter()
            .filter(|request| request.cause.is_some())
            .count()
    }
}

/// Returns the number of must-keep facts in the messages of `history`, and how many of them
/// `request` contains.
pub fn measure_coverage(history: &[Arc<Entry>], request: &Request) -> Coverage {
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
    let ledger = collect_ledger(&plan, OpenWork::default());
    let mut text = String::new();
    for part in request
        .segments
        .iter()
        .flat_map(|segment| &segment.entry.message.content)
    {
        let piece = match part {
            Part::Text { text, .. } => text,
            // Commands are compared in plain text, not with JSON escapes.
            Part::ToolCall(call) => match serde_json::from_str(&call.arguments) {
                Ok(arguments) => &join_strings(&arguments),
                Err(_) => &call.arguments,
            },
            Part::ToolResult(result) => &result.envelope.text,
            Part::Thinking(_) | Part::Image(_) => continue,
        };
        text.push_str(piece);
        text.push('\n');
    }
    Coverage {
        kept: ledger.len() - find_missing(&ledger, &text).len(),
        all: ledger.len(),
    }
}

/// Returns the strings in a JSON value, one per line.
pub(crate) fn join_strings(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(values) => values.iter().map(join_strings).collect(),
        Value::Object(fields) => fields.values().map(join_strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// Replays a recording under another policy. `see` is called for every request, except for summary
/// requests, with the number of the step and the request as it would be sent; the replay ends early
/// if it returns [`ControlFlow::Break`].
pub fn replay_recording(
    recording: &Recording<'_>,
    variant: &Variant,
    model: &ModelSpec,
    counter: &dyn TokenCounter,
    mut see: impl FnMut(usize, &Request) -> ControlFlow<()>,
) -> Replay {
    let policy = &variant.policy;
    let mut replay = Replay::default();
    let mut cache = CacheSimulator::new(&model.cache);
    let mut carry = Carry::default();
    let mut regrets = Regrets::default();
    let mut archives = Archives::new(recording.history, variant);
    let memo = Memo::default();
    let mut seen = 0;
    let mut rereads = Rereads::new(model);
    for (number, step) in recording.steps.iter().enumerate() {
        let end = step.messages.min(recording.history.len());
        let new = recording.history.get(seen..end).unwrap_or_default();
        let asked = regrets.asked_tokens;
        let regretted = regrets.count_new_regrets(new, carry.cleared.as_ref());
        replay.regret += regretted;
        rereads.pay(regretted, regrets.asked_tokens - asked);
        seen = seen.max(end);
        let idle = carry.at.map(|at| step.at.saturating_sub(at));
        let is_cold = is_cold(model, carry.last.as_ref(), idle);
        if let Some(archived) = archives.archive_if_due(end, is_cold, policy, model, counter) {
            let usage = Usage {
                input: archived.asked_tokens,
                ..Usage::default()
            };
            replay.requests.push(Replayed {
                usage,
                cost: model.price.map(|price| price.request_cost(usage).total),
                cause: None,
                pruned_tokens: 0,
                reminder_distance: None,
            });
            replay.archives += 1;
            rereads.forget();
            regrets.mark_archived(archived.first_kept);
        }
        let history = archives.history_until(end);
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
        if see(number, &assembly.request).is_break() {
            break;
        }
        replay.unseen_results += unseen_results(new, &assembly.request);
        if assembly.account.cleared.is_some() {
            rereads.forget();
        }
        let usage = cache.send_request(
            step.at,
            &request_pieces(&assembly.request, model.tokenizer_factor),
        );
        let reply = recording
            .history
            .get(end)
            .filter(|entry| entry.message.role == Role::Assistant);
        let reply = reply.map(|reply| CachePiece::from_reply(reply, model));
        if let Some(reply) = &reply {
            cache.record_reply(step.at, reply);
        }
        rereads.record_usage(usage);
        if let Some(answer) = recording.history.get(end) {
            let edits = seen_edits(&answer.message, &history, &assembly.request);
            replay.edits += edits.edits;
            replay.blind_edits += edits.blind;
            rereads.pay(edits.blind, edits.tokens);
        }
        archives.record_usage(Usage {
            output: reply.map_or(0, |reply| reply.tokens),
            ..usage
        });
        replay.requests.push(Replayed {
            usage,
            cost: model.price.map(|price| price.request_cost(usage).total),
            cause: assembly
                .account
                .prefix
                .as_ref()
                .and_then(|prefix| prefix.broken.as_ref())
                .map(|one| one.cause),
            pruned_tokens: assembly.account.pruned_tokens,
            reminder_distance: max_reminder_distance(&assembly.request),
        });
        carry.update(assembly.account, step.at);
        replay.last = Some(assembly.request);
        replay.last_messages = end;
    }
    replay.reread_cost = rereads.cost;
    replay
}

/// Adds up the cost of sending omitted text again.
struct Rereads<'a> {
    model: &'a ModelSpec,
    /// The cost so far in USD; `None` without prices.
    cost: Option<f64>,
    /// The number of input tokens of the newest request.
    request: u64,
    /// The number of tokens of repeated reads that are still part of the newest request.
    carried: u64,
}

impl<'a> Rereads<'a> {
    fn new(model: &'a ModelSpec) -> Self {
        Self {
            model,
            cost: model.price.map(|_| 0.0),
            request: 0,
            carried: 0,
        }
    }

    /// Adds the cost of `requests` additional requests, whose input is read from the cache, and of
    /// `counted` tokens that these requests send again.
    fn pay(&mut self, requests: usize, counted: u64) {
        let writes = self
            .model
            .price
            .is_some_and(|price| price.cache_write.is_some());
        let mut left = (counted as f64 * self.model.tokenizer_factor) as u64;
        // The size of each request decides which prices apply to it.
        for number in 0..requests as u64 {
            let tokens = left / (requests as u64 - number);
            left -= tokens;
            self.add(Usage {
                cached_input: self.request + self.carried,
                cache_write: if writes { tokens } else { 0 },
                input: if writes { 0 } else { tokens },
                ..Usage::default()
            });
            self.carried += tokens;
        }
    }

    /// Records the usage of a request, and adds the cost of the repeated text in it.
    fn record_usage(&mut self, usage: Usage) {
        self.request = usage.all_input();
        let longer = Usage {
            cached_input: usage.cached_input + self.carried,
            ..usage
        };
        if let (Some(cost), Some(price)) = (&mut self.cost, self.model.price) {
            *cost += price.request_cost(longer).total - price.request_cost(usage).total;
        }
    }

    /// Resets the count of repeated tokens, because clearing old results removed the repeated text
    /// as well.
    fn forget(&mut self) {
        self.carried = 0;
    }

    fn add(&mut self, usage: Usage) {
        if let (Some(cost), Some(price)) = (&mut self.cost, self.model.price) {
            *cost += price.request_cost(usage).total;
        }
    }
}

/// Returns the number of messages after the newest copy of a reminder, or the largest of these
/// numbers if there are several kinds of reminders.
fn max_reminder_distance(request: &Request) -> Option<usize> {
    let mut newest: HashMap<&str, usize> = HashMap::new();
    for (behind, segment) in request.segments.iter().rev().enumerate() {
        if segment.layer == Layer::Reminders {
            newest.entry(segment.owner).or_insert(behind);
        }
    }
    newest.into_values().max()
}

/// The state that a replay carries from one request to the next.
#[derive(Default)]
struct Carry {
    last: Option<Sent>,
    cleared: Option<Cleared>,
    carried: Option<Carried>,
    at: Option<Duration>,
}

impl Carry {
    fn update(&mut self, account: Account, at: Duration) {
        self.cleared = account.cleared.or(self.cleared.take());
        self.carried = account.carried.or(self.carried.take());
        self.last = Some(account.sent);
        self.at = Some(at);
    }
}

#[cfg(test)]
mod tests;
