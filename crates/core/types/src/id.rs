//! Ids, and the sources of ids and times.

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
    /// Returns the first eight hex digits, with which people and models refer to a message.
    pub fn short_id(self) -> ShortId {
        ShortId(self.0.as_fields().0)
    }

    /// Derives an id from the hash of the message's source, for imported messages. Importing a
    /// source twice gives each message an unchanged id.
    pub fn from_hash(hash: ContentHash) -> Self {
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
            // `"x"` never parses, and its error fits a wrong length as well.
            return u32::from_str_radix("x", 16).map(Self);
        }
        u32::from_str_radix(text, 16).map(Self)
    }
}

/// The id of a conversation: generated, or chosen by its creator.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct ConversationId(String);

impl ConversationId {
    /// Creates an id from any text. The store rejects an empty id.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first eight characters of the id, as shown in default names and tables.
    pub fn short_prefix(&self) -> &str {
        self.0
            .char_indices()
            .nth(8)
            .map_or(self.0.as_str(), |(end, _)| &self.0[..end])
    }

    /// Returns the id in a form that is a valid file name, by [`encode_file_name`]: imported ids
    /// may contain any characters.
    pub fn file_name(&self) -> String {
        encode_file_name(&self.0)
    }
}

/// The maximum length of an encoded file name, in bytes. The end of a longer name is replaced by a
/// hash: file systems allow 255 bytes, and callers append extensions.
const MAX_FILE_NAME_LEN: usize = 150;

/// Encodes an arbitrary name as a file name. ASCII letters, digits, `-`, `_` and inner dots stay as
/// they are, so generated ids are unchanged; every other character becomes `%` and its code point
/// in hex. The result is never empty, is not hidden, contains no path separator, and is different
/// for different names.
pub fn encode_file_name(name: &str) -> String {
    let code = |(at, c): (usize, char)| {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || (c == '.' && at > 0) {
            c.to_string()
        } else {
            format!("%{:x}", c as u32)
        }
    };
    let mut safe: String = name.char_indices().map(code).collect();
    if safe.len() > MAX_FILE_NAME_LEN {
        safe.truncate(MAX_FILE_NAME_LEN - 50);
        safe.extend([
            "%-",
            &ContentHash::from_content(name.as_bytes()).to_string(),
        ]);
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

/// A source of the current time. The binary supplies the system clock; tests supply a fake clock.
pub trait Clock: Send + Sync {
    /// Returns the current time, with a precision of milliseconds.
    fn now(&self) -> Timestamp;
}

/// A source of new ids. The binary supplies random ids; tests supply a fixed sequence.
pub trait IdSource: Send + Sync {
    /// Returns a UUID v4 that this source has not returned before.
    fn new_uuid(&self) -> Uuid;

    fn new_message_id(&self) -> MessageId {
        MessageId(self.new_uuid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_is_safe_for_every_id() {
        let plain = [
            "0a1b2c3d-0000-4000-8000-000000000000",
            "a_b.c-1",
            "salvaged-7",
        ];
        for name in plain {
            assert_eq!(encode_file_name(name), name);
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
            assert!(safe.len() <= MAX_FILE_NAME_LEN, "{name:?}: {safe}");
            assert!(
                seen.insert(safe.clone()) && !plain.contains(&safe.as_str()),
                "{name:?}: {safe}"
            );
        }
    }

    #[test]
    fn short_id_is_the_first_eight_digits() {
        let id: MessageId = "0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap();
        assert_eq!(id.short_id().to_string(), "0a1b2c3d");
        assert_eq!("0a1b2c3d".parse::<ShortId>().unwrap(), id.short_id());
        assert!("a1b2c3d".parse::<ShortId>().is_err());
    }

    #[test]
    fn short_conversation_id_never_cuts_a_character() {
        assert_eq!(ConversationId::new("短い").short_prefix(), "短い");
        assert_eq!(ConversationId::new("123456789").short_prefix(), "12345678");
    }
}
