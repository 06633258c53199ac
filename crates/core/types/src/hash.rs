//! Content hashes. Equal content has an equal hash on every machine and in every run.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A content hash: the first 16 bytes of a BLAKE3 hash, which are enough to rule out accidental
/// collisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub [u8; 16]);

impl ContentHash {
    /// Returns the hash of `bytes`, as computed by a [`Hasher`] that receives them as a single
    /// piece.
    pub fn from_content(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(bytes);
        hasher.finish()
    }
}

/// Builds a [`ContentHash`] from pieces. The length of each piece is hashed with it, so `ab` and
/// `c` give another hash than `a` and `bc`.
#[derive(Default)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    /// Adds one piece and returns `self`, so that calls can be chained.
    pub fn update(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Returns the hash of all pieces added so far.
    pub fn finish(&self) -> ContentHash {
        let mut out = [0; 16];
        out.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        ContentHash(out)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not 32 hex digits.
#[derive(Debug, thiserror::Error)]
#[error("a content hash is 32 hex digits")]
pub struct BadHash;

impl FromStr for ContentHash {
    type Err = BadHash;

    fn from_str(text: &str) -> Result<Self, BadHash> {
        if text.len() != 32 {
            return Err(BadHash);
        }
        u128::from_str_radix(text, 16)
            .map(|number| Self(number.to_be_bytes()))
            .map_err(|_| BadHash)
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hasher_distinguishes_pieces_of_equal_concatenation() {
        let mut one = Hasher::default();
        let mut other = Hasher::default();
        one.update(b"ab").update(b"c");
        other.update(b"a").update(b"bc");
        assert_ne!(one.finish(), other.finish());
    }

    #[test]
    fn content_hash_round_trips_through_text() {
        let hash = ContentHash::from_content(b"haft");
        assert_eq!(hash.to_string().parse::<ContentHash>().unwrap(), hash);
        assert_eq!(
            serde_json::from_str::<ContentHash>(&serde_json::to_string(&hash).unwrap()).unwrap(),
            hash
        );
    }
}
