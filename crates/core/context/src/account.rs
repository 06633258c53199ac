//! What comes out besides the request: an account of how it came to be.

use std::fmt;

use haft_types::{Cost, Layer, MessageId, Request, SentSegment, Usage};

use crate::budget::Budget;
use crate::build::blocks::Repair;
use crate::cache::prefix::{Prefix, Sent};
use crate::carried::{Carried, Cleared};
use crate::policy::Policy;
use crate::reduce::ladder::LadderStep;

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
    /// Tokens left out because people edited what is sent.
    pub edited_tokens: u64,
    /// Tokens left out by pruning, by old decisions and new ones.
    pub pruned_tokens: u64,
    /// How many messages pruning looked at: at most each one twice.
    pub pruning_steps: usize,
    /// What has been left out so far, if this request left out more: keep it and give it to the
    /// next snapshot.
    pub cleared: Option<Cleared>,
    /// What this request decided for later ones besides, if that changed: keep it and give it to
    /// the next snapshot.
    pub carried: Option<Carried>,
    /// The messages whose results were first sent as excerpts by this request. Before sending it,
    /// write their whole text to [`excerpt_file`](crate::excerpt_file).
    pub excerpts: Vec<MessageId>,
    /// What else had to go because the request was still too large, in order.
    pub ladder: Vec<LadderStep>,
    /// How it compares to the request before; absent for the first one.
    pub prefix: Option<Prefix>,
    /// Its input tokens by class, as far as the cache can still hold the request before.
    pub expected: Usage,
    /// What that input costs; absent without prices.
    pub expected_cost: Option<Cost>,
    /// What the next snapshot should be compared to, once this request is sent.
    pub sent: Sent,
    /// What people should know.
    pub warnings: Vec<Warning>,
}

impl Account {
    /// Whether so little of the conversation can be read from the cache that archiving a part of it
    /// costs nothing more: less than a quarter of it stands before the break.
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

    /// Whether more had to be left out than before, and too little could be: soon it has to be done
    /// again, with another break.
    pub fn is_short_of_room(&self, policy: &Policy) -> bool {
        self.cleared.is_some()
            && self.budget.used() as f64 > policy.compact_cold_at * self.budget.room() as f64
    }
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
