//! What a run may use up before it is stopped.

use std::time::Duration;

use crate::turn::Reason;

/// The limits of a run; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TurnLimits {
    /// Replies of the model.
    pub turns: Option<u32>,
    /// Tokens, input and output together, whatever the cache did with them.
    pub tokens: Option<u64>,
    /// Money in USD.
    pub budget_usd: Option<f64>,
    /// Time.
    pub wall_time: Option<Duration>,
}

/// What a run has used up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Tokens, input and output together.
    pub tokens: u64,
    /// Money in USD, where prices are known.
    pub usd: f64,
    /// Time since it began.
    pub elapsed: Duration,
}

impl TurnLimits {
    /// Whether only models with a price may be asked: there is a limit of money, and none of tokens
    /// to hold in its place.
    pub fn needs_price(&self) -> bool {
        self.budget_usd.is_some() && self.tokens.is_none()
    }

    /// What is used up of each limit, for people; nothing without limits.
    pub(crate) fn used(&self, replies: u32, spent: &Spent) -> String {
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

    /// The limit that leaves no room for another request, if there is one.
    pub(crate) fn exceeded(&self, replies: u32, spent: &Spent) -> Option<Reason> {
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
        self.out_of_time(spent.elapsed)
    }

    /// The end of the time, if it is over.
    pub(crate) fn out_of_time(&self, elapsed: Duration) -> Option<Reason> {
        let limit = self.wall_time.filter(|limit| elapsed >= *limit)?;
        let message = format!(
            "Stopped after {} s (`--max-wall-time {}`).",
            elapsed.as_secs(),
            limit.as_secs()
        );
        Some(Reason::new("max_wall_time", message))
    }
}
