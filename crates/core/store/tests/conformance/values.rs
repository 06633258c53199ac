//! A clock that ticks by itself, and short ways to make values.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use haft_types::{Clock, ConversationId, Message, MessageId, Role, Timestamp};

/// Each look at it is a second later than the one before.
pub struct TickingClock(AtomicI64);

impl TickingClock {
    /// One that shows `tick(0)` first.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(0)))
    }
}

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        tick(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// What the ticking clock shows at its `n`th look, from 0.
///
/// # Panics
/// Beyond the year 9999.
pub fn tick(n: i64) -> Timestamp {
    Timestamp::from_second(1_794_736_800 + n).unwrap()
}

/// The conversation of this id.
pub fn conversation(id: &str) -> ConversationId {
    ConversationId::new(id)
}

/// The message id whose first eight digits are `n` in hex.
///
/// # Panics
/// Never: every number gives an id.
pub fn id(n: u32) -> MessageId {
    format!("{n:08x}-0000-4000-8000-000000000000")
        .parse()
        .unwrap()
}

/// The user's message with [`id`] and [`tick`] of `n`.
pub fn user(n: u32, text: &str) -> Message {
    Message::text(id(n), Role::User, text, tick(i64::from(n)))
}
