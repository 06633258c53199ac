//! The result of [`assemble`](crate::assemble()): the request, and an account of the decisions behind
//! it.

use std::fmt;

use haft_types::{Cost, Layer, MessageId, Request, SentSegment, Usage};

use crate::budget::Budget;
use crate::build::blocks::Repair;
use crate::cache::prefix::{Prefix, Sent};
use crate::carried::{Carried, Cleared};
use crate::policy::Policy;
use crate::reduce::ladder::LadderStep;

/// The next request and the account of how it was assembled.
#[derive(Clone, Debug)]
pub struct Assembly {
    pub request: Request,
    pub account: Account,
}

/// Describes how a request was assembled, including its budget, the parts left out, and its
/// expected cost.
#[derive(Clone, Debug)]
pub struct Account {
    /// The number of tokens in each layer of the request, compared with the context window.
    pub budget: Budget,
    /// The round that the request belongs to, counted from 1.
    pub round: u32,
    /// The differences between the stored messages and those in the request.
    pub repaired: Vec<Repair>,
    /// The number of tokens left out because their messages are marked as deleted.
    pub deleted_tokens: u64,
    /// The number of tokens removed by the user's edits of the context.
    pub edited_tokens: u64,
    /// The number of tokens removed by pruning, for this request and by decisions made for earlier
    /// ones.
    pub pruned_tokens: u64,
    /// The number of messages that pruning examined; each message counts at most twice.
    pub pruning_steps: usize,
    /// All pruning decisions made so far in the conversation; `None` if this request added none.
    /// Store the value and pass it to the next snapshot.
    pub cleared: Option<Cleared>,
    /// The decisions besides `cleared` that later requests depend on; `None` if they did not
    /// change. Store the value and pass it to the next snapshot.
    pub carried: Option<Carried>,
    /// The messages whose results this request sends as excerpts for the first time. Before sending
    /// the request, write their full text to [`excerpt_path`](crate::excerpt_path).
    pub excerpts: Vec<MessageId>,
    /// The steps of the reduction ladder that were applied because the request was still too large,
    /// in order.
    pub ladder: Vec<LadderStep>,
    /// The comparison with the previous request; `None` for the first request.
    pub prefix: Option<Prefix>,
    /// The expected input tokens by class (read, written, fresh), based on the part of the previous
    /// request that the cache can still contain.
    pub expected: Usage,
    /// The expected cost of the input; `None` if the model has no prices.
    pub expected_cost: Option<Cost>,
    /// The outline of this request, with which the next request is compared.
    pub sent: Sent,
    /// Problems to show to the user.
    pub warnings: Vec<Warning>,
}

impl Account {
    /// True if less than a quarter of the conversation lies before the cache break. Everything
    /// after the break is sent uncached in any case, so archiving a part of the conversation now
    /// costs nothing extra.
    pub fn rewrites_history(&self) -> bool {
        let Some(prefix) = self
            .prefix
            .as_ref()
            .filter(|prefix| prefix.broken.is_some())
        else {
            return false;
        };
        let history = |one: &&SentSegment| matches!(one.layer, Layer::History | Layer::Current);
        let tokens = |segments: &[SentSegment]| -> u64 {
            segments
                .iter()
                .filter(history)
                .map(|segment| u64::from(segment.tokens))
                .sum()
        };
        let segments = &self.sent.segments;
        4 * tokens(&segments[..prefix.kept.min(segments.len())]) < tokens(segments)
    }

    /// True if pruning cleared further messages for this request and the request still exceeds
    /// `compact_cold_at`, so that another reduction, with another cache break, will soon be needed.
    pub fn is_short_of_room(&self, policy: &Policy) -> bool {
        self.cleared.is_some()
            && self.budget.used_tokens() as f64
                > policy.compact_cold_at * self.budget.max_input_tokens() as f64
    }
}

/// A problem that the user should know about, but that does not prevent the request from being
/// sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A tool has no description, so the model must guess its purpose from its name.
    ToolWithoutDescription { name: String },
    /// The system prompt and the tools together have more tokens than `context.system_warn` allows.
    LargeSystem {
        tokens: u64,
        /// The maximum number of tokens, as set by `context.system_warn`.
        limit: u64,
    },
    /// The marks for deletion were ignored, because without the marked messages there would be no
    /// message to answer.
    MarksNotApplied,
    /// The request fills at least the share `warn_at` of the usable window.
    WindowFilling { tokens: u64, window: u64 },
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
