//! A circuit breaker, which blocks a broken tool for a while.

use std::time::{Duration, Instant};

/// The limits of the circuit breakers of all tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// The number of consecutive failures, all caused by the tool itself, after which the tool is
    /// blocked.
    pub failures: u32,
    /// The time for which a tool is blocked; zero blocks no tool. Afterwards, one call may run as a
    /// trial.
    pub pause: Duration,
}

impl Default for BreakerLimits {
    fn default() -> Self {
        Self {
            failures: 3,
            pause: Duration::from_mins(5),
        }
    }
}

/// The circuit breaker of one tool, which blocks the tool for a while after repeated failures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    opened: Option<Instant>,
}

impl Breaker {
    /// Returns the time for which the tool will still be blocked; `None` if it may be called.
    pub(super) fn time_until_retry(&self, limits: BreakerLimits, now: Instant) -> Option<Duration> {
        let passed = now.saturating_duration_since(self.opened?);
        let left = limits.pause.checked_sub(passed)?;
        (!left.is_zero()).then_some(left)
    }

    /// Counts a failure of the tool, or resets the count if the tool worked.
    pub(super) fn record_health(
        &mut self,
        health: crate::ToolHealth,
        limits: BreakerLimits,
        now: Instant,
    ) {
        match health {
            crate::ToolHealth::Sound => *self = Self::default(),
            crate::ToolHealth::Broken => {
                self.failures += 1;
                // If the one call after the pause fails, the circuit opens again at once.
                if self.failures >= limits.failures {
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

    const LIMITS: BreakerLimits = BreakerLimits {
        failures: 3,
        pause: Duration::from_mins(5),
    };

    #[test]
    fn breaker_follows_its_limits() {
        let start = Instant::now();
        let open = |failures, seconds| {
            let limits = BreakerLimits {
                failures,
                pause: Duration::from_secs(seconds),
            };
            let mut breaker = Breaker::default();
            breaker.record_health(ToolHealth::Broken, limits, start);
            breaker.record_health(ToolHealth::Broken, limits, start);
            breaker.time_until_retry(limits, start + Duration::from_secs(1))
        };
        assert_eq!(open(3, 60), None);
        assert_eq!(open(2, 60), Some(Duration::from_secs(59)));
        assert_eq!(open(1, 60), Some(Duration::from_secs(59)));
        assert_eq!(open(2, 1), None);
        assert_eq!(open(2, 0), None, "no pause");
    }

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
            breaker.record_health(health, LIMITS, start);
            assert_eq!(breaker.time_until_retry(LIMITS, start), None);
        }
        breaker.record_health(ToolHealth::Broken, LIMITS, start);
        assert_eq!(
            breaker.time_until_retry(LIMITS, start + Duration::from_secs(100)),
            Some(Duration::from_secs(200))
        );
        let later = start + Duration::from_mins(5);
        assert_eq!(breaker.time_until_retry(LIMITS, later), None);
        breaker.record_health(ToolHealth::Broken, LIMITS, later);
        assert_eq!(
            breaker.time_until_retry(LIMITS, later),
            Some(LIMITS.pause),
            "it had its chance"
        );
        breaker.record_health(ToolHealth::Sound, LIMITS, later);
        assert_eq!(breaker.time_until_retry(LIMITS, later), None);
    }
}
