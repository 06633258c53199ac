//! Lets a thread wait for something to do.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// The interval at which a waiting thread checks whether it is to stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A signal that wakes one waiting thread. A signal that nobody waits for is kept.
#[derive(Default)]
pub(crate) struct Wakeup {
    signaled: Mutex<bool>,
    changed: Condvar,
}

impl Wakeup {
    pub(crate) fn signal(&self) {
        *self.signaled.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Waits for the next signal, for at most `limit` or until `stop` is canceled.
    pub(crate) fn wait(&self, limit: Duration, stop: &CancellationToken) {
        let end = Instant::now() + limit;
        let mut signaled = self.signaled.lock().unwrap_or_else(PoisonError::into_inner);
        while !*signaled && !stop.is_cancelled() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self
                .changed
                .wait_timeout(signaled, left.min(CHECK_INTERVAL));
            signaled = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *signaled = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_returns_at_once_after_a_signal_or_a_stop() {
        let long = Duration::from_hours(1);
        let wakeup = Wakeup::default();
        let stop = CancellationToken::new();
        wakeup.signal();
        wakeup.wait(long, &stop);
        stop.cancel();
        wakeup.wait(long, &stop);
    }
}
