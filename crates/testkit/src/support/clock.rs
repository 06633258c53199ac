//! A clock that advances only on request.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use haft_types::{Clock, Timestamp};

/// A clock for tests, which advances only on request. By default, it starts at
/// 2025-01-01T00:00:00Z.
#[derive(Debug)]
pub struct FakeClock {
    milliseconds: AtomicI64,
}

impl Default for FakeClock {
    fn default() -> Self {
        Self {
            milliseconds: AtomicI64::new(1_735_689_600_000),
        }
    }
}

impl FakeClock {
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            milliseconds: AtomicI64::new(start.as_millisecond()),
        }
    }

    pub fn advance(&self, by: Duration) {
        let milliseconds = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.milliseconds.fetch_add(milliseconds, Ordering::AcqRel);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        // The clock stops at the end of the year 9999.
        Timestamp::from_millisecond(self.milliseconds.load(Ordering::Acquire))
            .unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_only_when_told() {
        let clock = FakeClock::default();
        assert_eq!(clock.now(), clock.now());
        let before = clock.now();
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now().as_millisecond() - before.as_millisecond(), 1500);
        assert_eq!(before.to_string(), "2025-01-01T00:00:00Z");
    }
}
