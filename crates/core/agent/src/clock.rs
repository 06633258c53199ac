//! The real clock and real ids.

use haft_types::{Clock, IdSource, Timestamp};
use jiff::Unit;
use uuid::Uuid;

/// The wall clock, to the millisecond.
pub struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        now.round(Unit::Millisecond).unwrap_or(now)
    }
}

/// Random ids.
pub struct RandomIds;

impl IdSource for RandomIds {
    fn uuid(&self) -> Uuid {
        Uuid::new_v4()
    }
}
