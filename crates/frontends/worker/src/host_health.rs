//! Decides whether this host can run tasks. A worker whose tasks cannot even begin must not take
//! one after the other.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of tasks in a row that must fail to begin before the worker pauses.
const MAX_FAILURES_IN_A_ROW: u32 = 3;
/// The longest pause between two attempts to take a task.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// The health of the host, as far as this worker knows it.
#[derive(Default)]
pub(crate) struct HostHealth(Mutex<HealthState>);

#[derive(Default)]
struct HealthState {
    /// The tasks in a row that could not begin.
    failures: u32,
    /// The pauses in a row.
    pauses: u32,
    problem: Option<String>,
    paused_until: Option<Instant>,
    /// True if the next task may be taken only after a successful check of the host.
    needs_check: bool,
}

/// The state of a worker that wants to take a task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// No task may be taken for this time.
    Paused(Duration),
    /// The host must be checked first.
    NeedsCheck,
}

impl HostHealth {
    fn lock(&self) -> MutexGuard<'_, HealthState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a task began, so the host is healthy.
    pub(crate) fn record_start(&self) {
        *self.lock() = HealthState::default();
    }

    /// Records that a task could not begin although the host passed its check. After several such
    /// tasks, the worker pauses.
    pub(crate) fn record_failure(&self, why: &str) {
        let mut state = self.lock();
        state.failures += 1;
        if state.failures >= MAX_FAILURES_IN_A_ROW {
            state.problem = Some(why.to_owned());
            state.pause();
        }
    }

    /// Records that the check of the host failed. The worker pauses, and takes no task until a
    /// check succeeds.
    pub(crate) fn record_sickness(&self, problem: String) {
        let mut state = self.lock();
        state.needs_check = true;
        state.problem = Some(problem);
        state.pause();
    }

    /// Records that the check of the host succeeded.
    pub(crate) fn record_recovery(&self) {
        let mut state = self.lock();
        state.needs_check = false;
        state.paused_until = None;
        state.problem = None;
    }

    pub(crate) fn readiness(&self) -> Readiness {
        let state = self.lock();
        let left = state
            .paused_until
            .map(|until| until.saturating_duration_since(Instant::now()))
            .filter(|left| !left.is_zero());
        match left {
            Some(left) => Readiness::Paused(left),
            None if state.needs_check => Readiness::NeedsCheck,
            None => Readiness::Ready,
        }
    }

    /// Returns the reason why the worker takes no tasks.
    pub(crate) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }
}

impl HealthState {
    fn pause(&mut self) {
        let pause = Duration::from_secs(1)
            .saturating_mul(1 << self.pauses.min(10))
            .min(MAX_PAUSE);
        self.pauses += 1;
        self.paused_until = Some(Instant::now() + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_pauses_after_failures_in_a_row() {
        let health = HostHealth::default();
        for _ in 1..MAX_FAILURES_IN_A_ROW {
            health.record_failure("git");
            assert_eq!(health.readiness(), Readiness::Ready);
        }
        health.record_start();
        for _ in 0..MAX_FAILURES_IN_A_ROW {
            health.record_failure("git");
        }
        assert!(matches!(health.readiness(), Readiness::Paused(_)));
        assert_eq!(health.problem().as_deref(), Some("git"));
        health.record_start();
        assert_eq!(
            (health.readiness(), health.problem()),
            (Readiness::Ready, None)
        );
    }

    #[test]
    fn readiness_needs_a_check_after_sickness() {
        let health = HostHealth::default();
        health.record_sickness("disk full".to_owned());
        assert!(matches!(health.readiness(), Readiness::Paused(_)));
        health.lock().paused_until = None;
        assert_eq!(health.readiness(), Readiness::NeedsCheck);
        health.record_recovery();
        assert_eq!(
            (health.readiness(), health.problem()),
            (Readiness::Ready, None)
        );
    }
}
