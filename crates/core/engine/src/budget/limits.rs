//! The limits of a run and the checks against them.

use std::time::Duration;

use crate::turn::Reason;

/// The limits of a run; `None` means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TurnLimits {
    /// The maximum number of replies by the model.
    pub turns: Option<u32>,
    /// The maximum number of tokens, input and output together. Cached input counts in full.
    pub tokens: Option<u64>,
    /// The maximum cost in USD.
    pub budget_usd: Option<f64>,
    /// The maximum duration of the run.
    pub wall_time: Option<Duration>,
}

/// The tokens, money and time that a run has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// The number of tokens, input and output together.
    pub tokens: u64,
    /// The cost in USD. Requests to models without a known price don't count.
    pub usd: f64,
    /// The time since the run began.
    pub elapsed: Duration,
}

impl TurnLimits {
    /// Returns true if only models with a known price may be used: there is a cost limit, and no
    /// token limit that could replace it.
    pub fn needs_price(&self) -> bool {
        self.budget_usd.is_some() && self.tokens.is_none()
    }

    /// Describes to the user how much of each limit is used. Returns an empty string without
    /// limits.
    pub(crate) fn describe_usage(&self, replies: u32, spent: &Spent) -> String {
        let turns = self
            .turns
            .map(|turns| format!("{replies} of {turns} replies"));
        let tokens = self
            .tokens
            .map(|limit| format!("{} of {limit} tokens", spent.tokens));
        let money = self
            .budget_usd
            .map(|budget| format!("${:.2} of ${budget:.2}", spent.usd));
        let minutes = |time: Duration| time.as_secs().div_ceil(60);
        let time = self
            .wall_time
            .map(|limit| format!("{} of {} minutes", minutes(spent.elapsed), minutes(limit)));
        [turns, tokens, money, time]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Returns the reason to stop if a limit leaves no room for another request.
    pub(crate) fn exceeded_limit(&self, replies: u32, spent: &Spent) -> Option<Reason> {
        if let Some(turns) = self.turns
            && replies >= turns
        {
            return Some(Reason::new(
                "max_turns",
                format!("Stopped after {replies} turns (`--max-turns {turns}`)."),
            ));
        }
        if let Some(limit) = self.tokens
            && spent.tokens >= limit
        {
            let message = format!(
                "Stopped after {} tokens (`--max-total-tokens {limit}`).",
                spent.tokens
            );
            return Some(Reason::new("max_tokens", message));
        }
        if let Some(budget) = self.budget_usd
            && spent.usd >= budget
        {
            let message = format!(
                "Stopped after ${:.4} (`--max-budget-usd {budget}`).",
                spent.usd
            );
            return Some(Reason::new("max_budget", message));
        }
        self.exceeded_time(spent.elapsed)
    }

    /// Returns the reason to stop if the time limit is exceeded.
    pub(crate) fn exceeded_time(&self, elapsed: Duration) -> Option<Reason> {
        let limit = self.wall_time.filter(|limit| elapsed >= *limit)?;
        let message = format!(
            "Stopped after {} s (`--max-wall-time {}`).",
            elapsed.as_secs(),
            limit.as_secs()
        );
        Some(Reason::new("max_wall_time", message))
    }
}
