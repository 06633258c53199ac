//! What a session and its sub-agents have used together, in all turns.

use std::sync::{Arc, Mutex, PoisonError};

/// What was used so far. Clones are the same purse.
#[derive(Clone, Default)]
pub(crate) struct Purse(Arc<Mutex<Used>>);

#[derive(Clone, Copy, Default)]
struct Used {
    tokens: u64,
    usd: f64,
}

impl Purse {
    /// Adds what a request used; its money where the price is known.
    pub(crate) fn spend(&self, tokens: u64, usd: f64) {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.tokens += tokens;
        used.usd += usd;
    }

    fn used(&self) -> Used {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.used().tokens
    }

    pub(crate) fn usd(&self) -> f64 {
        self.used().usd
    }
}
