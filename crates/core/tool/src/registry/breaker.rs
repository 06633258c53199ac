//! A circuit breaker, which blocks a broken tool for a while.

use std::time::{Duration, Instant};

/// The number of consecutive failures, all caused by the tool itself, after which the tool is
/// blocked.
const MAX_FAILURES: u32 = 3;
/// The time for which a tool is blocked. Afterwards, one call may run as a trial.
const OPEN_DURATION: Duration = Duration::from_mins(5);

/// The circuit breaker of one tool, which blocks the tool for a while after repeated failures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    opened: Option<Instant>,
}

impl Breaker {
    /// Returns the time for which the tool will still be blocked; `None` if it may be called.
    pub(super) fn time_until_retry(&self, now: Instant) -> Option<Duration> {
        let left = OPEN_DURATION.checked_sub(now.saturating_duration_since(self.opened?))?;
        (!left.is_zero()).then_some(left)
    }

    /// Counts a failure of the tool, or resets the count if the tool worked.
    pub(super) fn record_health(&mut self, health: crate::ToolHealth, now: Instant) {
        match health {
            crate::ToolHealth::Sound => *self = Self::default(),
            crate::ToolHealth::Broken => {
                self.failures += 1;
                // If the one call after the pause fails, the circuit opens again at once.
                if self.failures >= MAX_FAILURES {
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
    fn breaker_opens_after_three_failures_and_closes_after_a_success() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        for health in [
            ToolHealth::Broken,
            ToolHealth::Broken,
            ToolHealth::Sound,
            ToolHealth::Broken,
            ToolHealth::Broken,
        ] {
            breaker.record_health(health, start);
            assert_eq!(breaker.time_until_retry(start), None);
        }
        breaker.record_health(ToolHealth::Broken, start);
        assert_eq!(
            breaker.time_until_retry(start + Duration::from_secs(100)),
            Some(Duration::from_secs(200))
        );
        let later = start + Duration::from_mins(5);
        assert_eq!(breaker.time_until_retry(later), None);
        breaker.record_health(ToolHealth::Broken, later);
        assert_eq!(
            breaker.time_until_retry(later),
            Some(OPEN_DURATION),
            "it had its chance"
        );
        breaker.record_health(ToolHealth::Sound, later);
        assert_eq!(breaker.time_until_retry(later), None);
    }
}
