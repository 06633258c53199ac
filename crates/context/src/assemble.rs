//! The whole way from a conversation to the next request.
//!
//! [`assemble`] walks pointers: messages that were counted and hashed when they were stored are shared, never looked into
//! again. It holds no state; what one request decides for the next one comes back in the [`Account`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::{fmt, mem};

use haft_types::{Entry, Layer, MessageId, ModelSpec, Request, Segment, TokenCounter, ToolSet};

use crate::blocks::{Repair, repair};
use crate::budget::Budget;
use crate::compress::{Compress, compress_finished};
use crate::documents::Documents;
use crate::error::ContextError;
use crate::integrity;
use crate::marks::{self, Marks};
use crate::memo::{Maker, Memo};
use crate::placement::find;
use crate::policy::Policy;
use crate::prune::{Cleared, Limits, prune};
use crate::reminders::Reminders;
use crate::rounds::Line;
use crate::system::REQUIRED;

static NO_MARKS: Marks = Marks { deleted: BTreeSet::new(), pinned: BTreeSet::new(), masked: BTreeSet::new() };

/// Everything the next request depends on.
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    /// The model that will be asked.
    pub model: &'a ModelSpec,
    /// How requests are built.
    pub policy: &'a Policy,
    /// The system message, from [`render_system`](crate::render_system) and [`system_entry`](crate::system_entry).
    pub system: &'a Arc<Entry>,
    /// The tools offered.
    pub tools: &'a Arc<ToolSet>,
    /// Every stored message in order, the current input included.
    pub history: &'a [Arc<Entry>],
    /// Counts the few messages made here.
    pub counter: &'a dyn TokenCounter,
    /// Rules and other standing texts.
    pub documents: Option<&'a Documents>,
    /// Role, TODO list, useful information and folder notes as they are now.
    pub reminders: Option<&'a Reminders>,
    /// Messages marked by people or the model.
    pub marks: Option<&'a Marks>,
    /// What pruning decided for earlier requests.
    pub cleared: Option<&'a Cleared>,
    /// Names the conversation to caches that route by key.
    pub cache_key: Option<&'a str>,
    /// What was made for earlier requests, so that it is not made again.
    pub memo: Option<&'a Memo>,
}

impl<'a> Snapshot<'a> {
    /// A snapshot of what every request needs; the rest is empty and can be set field by field.
    pub fn new(
        model: &'a ModelSpec,
        policy: &'a Policy,
        system: &'a Arc<Entry>,
        tools: &'a Arc<ToolSet>,
        history: &'a [Arc<Entry>],
        counter: &'a dyn TokenCounter,
    ) -> Self {
        Self {
            model,
            policy,
            system,
            tools,
            history,
            counter,
            documents: None,
            reminders: None,
            marks: None,
            cleared: None,
            cache_key: None,
            memo: None,
        }
    }
}

/// The next request, and an account of how it came to be.
#[derive(Clone, Debug)]
pub struct Assembly {
    /// What to send.
    pub request: Request,
    /// How it came to be.
    pub account: Account,
}

/// How a request came to be.
#[derive(Clone, Debug)]
pub struct Account {
    /// Where its tokens go.
    pub budget: Budget,
    /// The round it belongs to, from 1.
    pub round: u32,
    /// What had to be repaired.
    pub repaired: Vec<Repair>,
    /// Tokens left out because their messages are marked as deleted.
    pub deleted_tokens: u64,
    /// Tokens left out by pruning, by old decisions and new ones.
    pub pruned_tokens: u64,
    /// How many messages pruning looked at: at most each one twice.
    pub pruning_steps: usize,
    /// What pruning has decided so far, if this request decided more: keep it and give it to the next snapshot.
    pub cleared: Option<Cleared>,
    /// What people should know.
    pub warnings: Vec<Warning>,
}

/// Something people should know about a request that can be sent nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The model must guess what this tool is for.
    ToolWithoutDescription {
        /// The tool.
        name: String,
    },
    /// System prompt and tools are very long.
    LargeSystem {
        /// Their tokens.
        tokens: u64,
        /// `context.system_warn`.
        limit: u64,
    },
    /// The list of deleted messages was not applied: without them nothing would be left to answer.
    MarksNotApplied,
    /// The window fills up.
    WindowFilling {
        /// Tokens of the request.
        tokens: u64,
        /// The window.
        window: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToolWithoutDescription { name } => write!(f, "tool `{name}` is offered without a description"),
            Self::LargeSystem { tokens, limit } => {
                write!(f, "system prompt and tools take {tokens} tokens, more than {limit}; offer fewer tools")
            }
            Self::MarksNotApplied => {
                f.write_str("the messages marked for deletion were sent: without them nothing would be left to answer")
            }
            Self::WindowFilling { tokens, window } => {
                write!(f, "the request takes {tokens} of the {window} tokens of the window")
            }
        }
    }
}

/// Makes the next request.
pub fn assemble(snapshot: &Snapshot<'_>) -> Result<Assembly, ContextError> {
    let maker = Maker { counter: snapshot.counter, memo: snapshot.memo };
    let mut blocks = repair(snapshot.history, snapshot.counter);
    let repaired = mem::take(&mut blocks.repairs);
    let mut line = Line::new(blocks);
    if line.items.is_empty() {
        return Err(ContextError::NoInput);
    }
    let round = line.round;
    let marks = snapshot.marks.unwrap_or(&NO_MARKS);
    let deleted = marks::delete(&mut line, marks);
    match snapshot.policy.compress {
        Compress::RoundEnd => compress_finished(&mut line, snapshot.policy.compress_limits, maker),
        Compress::Never => {}
    }
    let run = snapshot.reminders.map(|reminders| reminders.run(snapshot.policy, maker)).unwrap_or_default();
    let fixed = fixed_tokens(snapshot, &run);
    let target = snapshot.policy.safe_zone.tokens(snapshot.model.context_window)?;
    let limits = Limits { fixed, target, policy: snapshot.policy, marks };
    let pruned = prune(&mut line, snapshot.cleared, limits, maker);
    let mut segments = layers(snapshot, line, run);
    set_boundaries(&mut segments);

    let request = Request {
        segments,
        tools: Arc::clone(snapshot.tools),
        max_output_tokens: snapshot.model.max_output_tokens,
        cache_key: snapshot.cache_key.map(str::to_owned),
    };
    integrity::check(&request, REQUIRED)?;
    let reserve = snapshot.model.output_reserve(snapshot.policy.output_reserve);
    let budget = Budget::of(&request, snapshot.model, u64::from(reserve));
    if budget.remaining < 0 {
        return Err(ContextError::TooLarge { tokens: budget.used(), room: budget.room(), table: budget.table() });
    }
    let mut warnings = warnings(&request, &budget, snapshot.policy);
    if deleted.is_err() {
        warnings.push(Warning::MarksNotApplied);
    }
    let account = Account {
        budget,
        round,
        repaired,
        deleted_tokens: deleted.unwrap_or(0),
        pruned_tokens: pruned.tokens,
        pruning_steps: pruned.steps,
        cleared: remember(snapshot.cleared, target, pruned.newly),
        warnings,
    };
    Ok(Assembly { request, account })
}

/// The tokens of everything but the history.
fn fixed_tokens(snapshot: &Snapshot<'_>, run: &[(&'static str, Arc<Entry>)]) -> u64 {
    let empty =
        Request { segments: Vec::new(), tools: Arc::clone(snapshot.tools), max_output_tokens: None, cache_key: None };
    let run = run.iter().map(|(_, entry)| u64::from(entry.tokens)).sum::<u64>();
    let documents = snapshot.documents.map_or(0, Documents::tokens);
    empty.tokens() + u64::from(snapshot.system.tokens) + documents + run
}

/// The decisions to keep, if there are new ones.
fn remember(before: Option<&Cleared>, target: u64, newly: Vec<MessageId>) -> Option<Cleared> {
    if newly.is_empty() {
        return None;
    }
    let mut ids = before.filter(|before| target <= before.target).map(|before| before.ids.clone()).unwrap_or_default();
    ids.extend(newly);
    Some(Cleared { target, ids })
}

/// Lays the layers out in their order, the run among the history.
fn layers(snapshot: &Snapshot<'_>, line: Line, run: Vec<(&'static str, Arc<Entry>)>) -> Vec<Segment> {
    let documents = snapshot.documents.map(|documents| documents.messages.as_slice()).unwrap_or_default();
    let length = 1 + documents.len() + line.summaries.len() + line.items.len() + run.len();
    let mut segments = Vec::with_capacity(length);
    segments.push(segment(Layer::System, "system", Arc::clone(snapshot.system)));
    segments.extend(documents.iter().map(|(owner, entry)| segment(Layer::Documents, owner, Arc::clone(entry))));
    segments.extend(line.summaries.into_iter().map(|entry| segment(Layer::History, "summary", entry)));

    let place = find(snapshot.policy.reminders, &line.items, snapshot.policy.max_distance);
    let mut items = line.items.into_iter().map(|item| segment(item.layer, item.owner, item.entry));
    segments.extend(items.by_ref().take(place));
    segments.extend(run.into_iter().map(|(owner, entry)| segment(Layer::Reminders, owner, entry)));
    segments.extend(items);
    segments
}

fn segment(layer: Layer, owner: &'static str, entry: Arc<Entry>) -> Segment {
    Segment { layer, owner, entry, boundary: false }
}

/// Marks where the provider should be able to find the prefix again: after the system layer, and at the end.
fn set_boundaries(segments: &mut [Segment]) {
    if let Some(system) = segments.first_mut() {
        system.boundary = true;
    }
    if let Some(last) = segments.last_mut() {
        last.boundary = true;
    }
}

fn warnings(request: &Request, budget: &Budget, policy: &Policy) -> Vec<Warning> {
    let mut warnings: Vec<_> = request
        .tools
        .specs
        .iter()
        .filter(|spec| spec.description.trim().is_empty())
        .map(|spec| Warning::ToolWithoutDescription { name: spec.name.clone() })
        .collect();
    let system = budget.layers.iter().find(|layer| layer.layer == Layer::System).map_or(0, |layer| layer.tokens);
    if system > u64::from(policy.system_warn) {
        warnings.push(Warning::LargeSystem { tokens: system, limit: u64::from(policy.system_warn) });
    }
    if budget.used() as f64 >= policy.warn_at * budget.window as f64 {
        warnings.push(Warning::WindowFilling { tokens: budget.used(), window: budget.window });
    }
    warnings
}

#[cfg(test)]
mod tests;
