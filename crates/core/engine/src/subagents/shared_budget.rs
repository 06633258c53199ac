//! What a session and its sub-agents have used together, in all turns.

use std::sync::{Arc, Mutex, PoisonError};

/// What was used so far. Clones are the same budget: sessions that have one share their limits of tokens and money.
#[derive(Clone, Default)]
pub struct SharedBudget(Arc<Mutex<BudgetUse>>);

#[derive(Clone, Copy, Default)]
struct BudgetUse {
    tokens: u64,
    usd: f64,
}

impl SharedBudget {
    /// Adds what a request used; its money where the price is known.
    pub(crate) fn spend(&self, tokens: u64, usd: f64) {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.tokens += tokens;
        used.usd += usd;
    }

    fn used(&self) -> BudgetUse {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tokens used so far, of all kinds together.
    pub fn tokens(&self) -> u64 {
        self.used().tokens
    }

    /// The money spent so far.
    pub fn usd(&self) -> f64 {
        self.used().usd
    }
}
