//! What-if: a recorded conversation, rendered request by request under another policy (SPEC 8.11). No model is called.
//!
//! Every request is what [`assemble`](crate::assemble) makes of the messages there were, and carries over what it carries over; the
//! cache is [simulated](CacheSimulator). The same recording and policy give the same figures and the same bytes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use haft_types::{Entry, MessageId, ModelSpec, Request, TokenCounter, ToolCall, ToolSet, Usage};

use crate::account::Account;
use crate::assemble::assemble;
use crate::copies::Carried;
use crate::memo::Memo;
use crate::policy::Policy;
use crate::prefix::{Cause, Sent};
use crate::prune::Cleared;
use crate::reminders::Reminders;
use crate::simulate::{CacheSimulator, pieces};
use crate::snapshot::Snapshot;
use crate::superseded::Subject;
use crate::system::SystemInput;

/// A request of the recording: how many messages there were, and when it was sent, counted from any beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The messages of the history that it could hold.
    pub messages: usize,
    /// When it was sent.
    pub at: Duration,
}

/// A recorded conversation.
#[derive(Clone, Copy)]
pub struct Recording<'a> {
    /// The system message.
    pub system: &'a Arc<Entry>,
    /// What it was rendered from, where it may be shortened.
    pub system_input: Option<&'a SystemInput<'a>>,
    /// The tools offered.
    pub tools: &'a Arc<ToolSet>,
    /// Every message.
    pub history: &'a [Arc<Entry>],
    /// When the model was asked.
    pub steps: &'a [Step],
    /// The reminders at each step, by its number; none at all where there are none.
    pub reminders: &'a dyn Fn(usize) -> Option<Reminders>,
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
}

/// A conversation under another policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// Its requests, but for those that could not be made.
    pub requests: Vec<Replayed>,
    /// Requests that would not have fitted.
    pub too_large: usize,
    /// How often something was asked for again while its text was cleared.
    pub regret: usize,
}

impl Replay {
    /// All input, by class.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.requests.iter().for_each(|request| sum += request.usage);
        sum
    }

    /// What the input costs in USD; absent without prices.
    pub fn cost(&self) -> Option<f64> {
        self.requests.iter().map(|request| request.cost).sum()
    }

    /// The tokens of the largest request.
    pub fn peak(&self) -> u64 {
        self.requests.iter().map(|request| request.usage.all_input()).max().unwrap_or(0)
    }

    /// How many requests broke the prefix.
    pub fn breaks(&self) -> usize {
        self.requests.iter().filter(|request| request.cause.is_some()).count()
    }
}

/// Replays a recording. `see` is shown every request as it would be sent.
pub fn replay(
    recording: &Recording<'_>,
    policy: &Policy,
    model: &ModelSpec,
    counter: &dyn TokenCounter,
    mut see: impl FnMut(&Request),
) -> Replay {
    let mut replay = Replay::default();
    let mut cache = CacheSimulator::new(&model.cache);
    let mut carry = Carry::default();
    let memo = Memo::default();
    let mut seen = 0;
    for (number, step) in recording.steps.iter().enumerate() {
        let history = &recording.history[..step.messages.min(recording.history.len())];
        let new = history.get(seen..).unwrap_or_default();
        replay.regret += carry.needed_again(&recording.history[..seen.min(history.len())], new);
        seen = history.len();
        let reminders = (recording.reminders)(number);
        let plain = Snapshot::new(model, policy, recording.system, recording.tools, history, counter);
        let assembly = assemble(&Snapshot {
            system_input: recording.system_input,
            reminders: reminders.as_ref(),
            cleared: carry.cleared.as_ref(),
            carried: carry.carried.as_ref(),
            last: carry.last.as_ref(),
            idle: carry.at.map(|at| step.at.saturating_sub(at)),
            memo: Some(&memo),
            ..plain
        });
        let Ok(assembly) = assembly else {
            replay.too_large += 1;
            continue;
        };
        see(&assembly.request);
        let usage = cache.send(step.at, &pieces(&assembly.request, model.tokenizer_factor));
        replay.requests.push(Replayed {
            usage,
            cost: model.price.map(|price| price.cost(usage).total),
            cause: assembly.account.prefix.as_ref().and_then(|prefix| prefix.broken.as_ref()).map(|one| one.cause),
            pruned_tokens: assembly.account.pruned_tokens,
        });
        carry.take(assembly.account, step.at);
    }
    replay
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

    /// How many calls of the new messages ask for what is cleared.
    fn needed_again(&self, history: &[Arc<Entry>], new: &[Arc<Entry>]) -> usize {
        let Some(cleared) = self.cleared.as_ref().filter(|cleared| !cleared.ids.is_empty()) else { return 0 };
        let asked: Vec<_> = calls(new).collect();
        if asked.is_empty() {
            return 0;
        }
        let by_id: HashMap<_, _> = calls(history).map(|call| (call.id.as_str(), call)).collect();
        let is_cleared = |id: MessageId| cleared.ids.contains(&id);
        let gone = history.iter().filter(|entry| is_cleared(entry.message.message_id));
        let gone = gone.flat_map(|entry| entry.message.tool_results());
        let gone: HashSet<_> = gone
            .filter_map(|result| by_id.get(result.tool_call_id.as_str()))
            .filter_map(|call| Subject::of(call))
            .collect();
        let again = |call: &&&ToolCall| Subject::of(call).is_some_and(|subject| gone.contains(&subject));
        asked.iter().filter(again).count()
    }
}

fn calls(entries: &[Arc<Entry>]) -> impl Iterator<Item = &ToolCall> {
    entries.iter().flat_map(|entry| entry.message.tool_calls())
}

#[cfg(test)]
mod tests;
