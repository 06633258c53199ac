//! The system clock and random ids.

use haft_types::{Clock, IdSource, Timestamp};
use jiff::Unit;
use uuid::Uuid;

/// The system clock, with a precision of milliseconds.
pub struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        now.round(Unit::Millisecond).unwrap_or(now)
    }
}

/// A source of random UUIDs.
pub struct RandomIds;

impl IdSource for RandomIds {
    fn new_uuid(&self) -> Uuid {
        Uuid::new_v4()
    }
}
