//! What messages say: a number makes a message, so that who checks need not be told its words.

use std::sync::Arc;

use haft_types::{Clock, ConversationId, Message, MessageId, Role, Timestamp};
use uuid::Uuid;

/// The message id with this number.
pub(crate) fn id(number: u32) -> MessageId {
    MessageId(Uuid::from_fields(
        number,
        0,
        0x4000,
        &[0x80, 0, 0, 0, 0, 0, 0, 0],
    ))
}

/// The words of a message in its revision; 0 is the message as it was stored.
pub(crate) fn words(number: u32, revision: u32) -> String {
    // From some words to several overflow pages, with a mark in every part of it.
    let length = [40, 300, 3_000, 12_000, 60_000][number as usize % 5];
    let mark = format!("[{number}.{revision} 快] ");
    mark.repeat(length / mark.len() + 1)
}

/// A message. Every seventh is a summary, as compaction makes them.
pub(crate) fn message(number: u32) -> Message {
    let role = if number.is_multiple_of(7) {
        Role::Summary
    } else {
        Role::User
    };
    Message::from_text(id(number), role, words(number, 0), time(number))
}

fn time(number: u32) -> Timestamp {
    Timestamp::from_second(1_794_736_800 + i64::from(number)).unwrap_or_default()
}

/// The number and revision a text says it is of; none if it is no text of ours, whole.
pub(crate) fn read(text: &str) -> Option<(u32, u32)> {
    let (number, revision) = text.strip_prefix('[')?.split_once(' ')?.0.split_once('.')?;
    let number = number.parse().ok()?;
    let revision = revision.parse().ok()?;
    (words(number, revision) == text).then_some((number, revision))
}

/// The conversation of this name.
pub(crate) fn conversation(name: &str) -> ConversationId {
    ConversationId::new(name)
}

/// A clock that stands still.
pub(crate) struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        time(0)
    }
}

/// It, as stores want it.
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(Still)
}
