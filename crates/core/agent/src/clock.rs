//! The system clock, random ids, and the ids of a replayed run.

use std::sync::Arc;

use haft_engine::RecordedRun;
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

/// The ids of the recorded run that a session replays.
pub(crate) struct RecordedIds(pub(crate) Arc<RecordedRun>);

impl IdSource for RecordedIds {
    fn new_uuid(&self) -> Uuid {
        self.0.next_id().0
    }
}

/// A source of random UUIDs.
pub struct RandomIds;

impl IdSource for RandomIds {
    fn new_uuid(&self) -> Uuid {
        Uuid::new_v4()
    }
}
