//! Ids, and where ids and times come from.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::hash::ContentHash;

/// The id of a message: a UUID v4, whose first eight hex digits are its [`ShortId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(pub Uuid);

impl MessageId {
    /// The first eight hex digits, by which people and models name a message.
    pub fn short(self) -> ShortId {
        ShortId(self.0.as_fields().0)
    }

    /// The id of a message that is made from something else, such as an imported one: same origin,
    /// same id.
    pub fn derived(hash: ContentHash) -> Self {
        Self(uuid::Builder::from_random_bytes(hash.0).into_uuid())
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MessageId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::from_str(text).map(Self)
    }
}

/// The first eight hex digits of a [`MessageId`], unique within a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShortId(pub u32);

impl fmt::Display for ShortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl FromStr for ShortId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != 8 {
            // The error a wrong digit gives says the right thing here too.
            return u32::from_str_radix("x", 16).map(Self);
        }
        u32::from_str_radix(text, 16).map(Self)
    }
}

/// The id of a conversation: generated, or given by whoever created it.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct ConversationId(String);

impl ConversationId {
    /// Takes any text as an id; the store refuses an empty one.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first eight characters, as used in default names and tables.
    pub fn short(&self) -> &str {
        self.0
            .char_indices()
            .nth(8)
            .map_or(self.0.as_str(), |(end, _)| &self.0[..end])
    }

    /// The id as [`file_name`] writes it: imported ones may hold anything.
    pub fn file_name(&self) -> String {
        file_name(&self.0)
    }
}

/// A longer name gets a hash for its end: file systems take 255 bytes, and endings are added.
const LONGEST_NAME: usize = 150;

/// A name for a file made of a name from elsewhere: plain ones, such as generated ids, are what
/// they are; in others, what is not a plain character is written as its code. It leads nowhere,
/// hides nothing, and no two names give the same.
pub fn file_name(name: &str) -> String {
    let plain = |at: usize, c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || (c == '.' && at > 0)
    };
    let code = |(at, c): (usize, char)| {
        if plain(at, c) {
            c.to_string()
        } else {
            format!("%{:x}", c as u32)
        }
    };
    let mut safe: String = name.char_indices().map(code).collect();
    if safe.len() > LONGEST_NAME {
        safe.truncate(LONGEST_NAME - 50);
        safe.extend(["%-", &ContentHash::of(name.as_bytes()).to_string()]);
    }
    if safe.is_empty() {
        "%".to_owned()
    } else {
        safe
    }
}

impl From<Uuid> for ConversationId {
    fn from(id: Uuid) -> Self {
        Self(id.to_string())
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Tells the time. The binary gives the real one, tests a fake one.
pub trait Clock: Send + Sync {
    /// The current time, to the millisecond.
    fn now(&self) -> Timestamp;
}

/// Makes fresh ids. The binary gives random ones, tests a fixed sequence.
pub trait IdSource: Send + Sync {
    /// A UUID v4 that was not given out before.
    fn uuid(&self) -> Uuid;

    /// A fresh message id.
    fn message_id(&self) -> MessageId {
        MessageId(self.uuid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_file_name_that_leads_nowhere() {
        let plain = [
            "0a1b2c3d-0000-4000-8000-000000000000",
            "a_b.c-1",
            "salvaged-7",
        ];
        for name in plain {
            assert_eq!(file_name(name), name);
        }
        let long = "x".repeat(5_000);
        let odd = [
            "",
            ".",
            "..",
            "../../x",
            "/abs",
            "a\0b",
            "a/b",
            "a%2fb",
            "a\\b",
            ".hidden",
            "\u{202e}x",
            "短い",
            "a\nb",
            "~",
            &long,
            &format!("{long}y"),
            &"ü".repeat(100),
            "CON:x",
            "a b",
            "%",
        ];
        let mut seen = std::collections::BTreeSet::new();
        for name in odd {
            let safe = ConversationId::new(name).file_name();
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.%".contains(c);
            assert!(
                safe.chars().all(fits) && !safe.starts_with('.') && !safe.is_empty(),
                "{name:?}: {safe}"
            );
            assert!(safe.len() <= LONGEST_NAME, "{name:?}: {safe}");
            assert!(
                seen.insert(safe.clone()) && !plain.contains(&safe.as_str()),
                "{name:?}: {safe}"
            );
        }
    }

    #[test]
    fn short_id_is_the_first_eight_digits() {
        let id: MessageId = "0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap();
        assert_eq!(id.short().to_string(), "0a1b2c3d");
        assert_eq!("0a1b2c3d".parse::<ShortId>().unwrap(), id.short());
        assert!("a1b2c3d".parse::<ShortId>().is_err());
    }

    #[test]
    fn short_conversation_id_never_cuts_a_character() {
        assert_eq!(ConversationId::new("短い").short(), "短い");
        assert_eq!(ConversationId::new("123456789").short(), "12345678");
    }
}
