//! A circuit breaker, which blocks a broken tool for a while.

use std::time::{Duration, Instant};

/// Consecutive failures of the tool itself that open the circuit.
const FAILURES: u32 = 3;
/// The time the circuit stays open. After it, one call may try.
const REST: Duration = Duration::from_mins(5);

/// The circuit breaker of one tool.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    opened: Option<Instant>,
}

impl Breaker {
    /// Returns the remaining time for which the tool is blocked; `None` if it may be called.
    pub(super) fn rest(&self, now: Instant) -> Option<Duration> {
        let left = REST.checked_sub(now.saturating_duration_since(self.opened?))?;
        (!left.is_zero()).then_some(left)
    }

    /// Records whether the tool worked in a call.
    pub(super) fn note(&mut self, health: crate::ToolHealth, now: Instant) {
        match health {
            crate::ToolHealth::Sound => *self = Self::default(),
            crate::ToolHealth::Broken => {
                self.failures += 1;
                // If the one call after the pause fails, the circuit opens again at once.
                if self.failures >= FAILURES {
                    self.opened = Some(now);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolHealth;

    #[test]
    fn three_failures_in_a_row_open_it_and_one_good_call_closes_it() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        for health in [
            ToolHealth::Broken,
            ToolHealth::Broken,
            ToolHealth::Sound,
            ToolHealth::Broken,
            ToolHealth::Broken,
        ] {
            breaker.note(health, start);
            assert_eq!(breaker.rest(start), None);
        }
        breaker.note(ToolHealth::Broken, start);
        assert_eq!(
            breaker.rest(start + Duration::from_secs(100)),
            Some(Duration::from_secs(200))
        );
        let later = start + Duration::from_mins(5);
        assert_eq!(breaker.rest(later), None);
        breaker.note(ToolHealth::Broken, later);
        assert_eq!(breaker.rest(later), Some(REST), "it had its chance");
        breaker.note(ToolHealth::Sound, later);
        assert_eq!(breaker.rest(later), None);
    }
}
