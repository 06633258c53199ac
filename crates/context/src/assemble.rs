//! The whole way from a conversation to the next request.
//!
//! [`assemble`] walks pointers: messages that were counted and hashed when they were stored are shared, never looked into
//! again. It holds no state; what one request decides for the next one comes back in the [`Account`].

use std::fmt;
use std::sync::Arc;

use haft_types::{Entry, Layer, ModelSpec, Request, Segment, TokenCounter, ToolSet};

use crate::blocks::{Repair, repair};
use crate::budget::Budget;
use crate::error::ContextError;
use crate::integrity;
use crate::policy::Policy;
use crate::system::REQUIRED;

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
    /// Names the conversation to caches that route by key.
    pub cache_key: Option<&'a str>,
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
        Self { model, policy, system, tools, history, counter, cache_key: None }
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
            Self::WindowFilling { tokens, window } => {
                write!(f, "the request takes {tokens} of the {window} tokens of the window")
            }
        }
    }
}

/// Makes the next request.
pub fn assemble(snapshot: &Snapshot<'_>) -> Result<Assembly, ContextError> {
    let blocks = repair(snapshot.history, snapshot.counter);
    let opens = |entry: &Arc<Entry>| entry.message.opens_round();
    let current = blocks.entries.iter().rposition(opens);
    let round = blocks.entries.iter().filter(|entry| opens(entry)).count() as u32;
    if blocks.entries.is_empty() {
        return Err(ContextError::NoInput);
    }

    let mut segments = Vec::with_capacity(blocks.entries.len() + 1);
    segments.push(segment(Layer::System, "system", Arc::clone(snapshot.system)));
    for (index, entry) in blocks.entries.into_iter().enumerate() {
        segments.push(if Some(index) == current {
            segment(Layer::Current, "current", entry)
        } else {
            segment(Layer::History, "history", entry)
        });
    }
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
    let warnings = warnings(&request, &budget, snapshot.policy);
    Ok(Assembly { request, account: Account { budget, round, repaired: blocks.repairs, warnings } })
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
