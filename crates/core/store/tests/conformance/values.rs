//! A clock that advances with each reading, and helpers that create values.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use haft_types::{Clock, ConversationId, Message, MessageId, Role, Timestamp};

/// A clock that advances by one second with each reading.
pub struct TickingClock(AtomicI64);

impl TickingClock {
    /// Returns a clock whose first reading is `tick(0)`.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(0)))
    }
}

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        tick(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Returns the `n`th reading of the ticking clock, from 0.
///
/// # Panics
/// Beyond the year 9999.
pub fn tick(n: i64) -> Timestamp {
    Timestamp::from_second(1_794_736_800 + n).unwrap()
}

/// Returns the conversation id `id`.
pub fn conversation(id: &str) -> ConversationId {
    ConversationId::new(id)
}

/// Returns the message id whose first eight digits are `n` in hexadecimal.
///
/// # Panics
/// Never: every number gives an id.
pub fn id(n: u32) -> MessageId {
    format!("{n:08x}-0000-4000-8000-000000000000")
        .parse()
        .unwrap()
}

/// Returns a user message with the [`id`] and the [`tick`] of `n`.
pub fn user(n: u32, text: &str) -> Message {
    Message::from_text(id(n), Role::User, text, tick(i64::from(n)))
}
