//! The bytes of messages that were sent before, kept by content.
//!
//! Invariant: a fragment depends on nothing but the message's content hash and its mark (the encoder's settings never
//! change), so equal segments give equal bytes. Only what the last request used is kept.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use haft_types::ContentHash;

/// Whether the provider's cache should have an entry that ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CacheMark {
    /// Nothing special.
    None,
    /// A cache marker.
    Boundary,
}

/// Whose turn a fragment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireTurn {
    User,
    Assistant,
}

/// The wire form of one message: comma-separated pieces, without a comma at either end.
#[derive(Debug)]
pub(crate) struct Fragment {
    /// Whose turn it belongs to.
    pub turn: WireTurn,
    /// Tool results: in a turn they stand before everything else.
    pub results: Vec<u8>,
    /// Everything else.
    pub items: Vec<u8>,
    /// What belongs to a tool result but may only follow the last result of its block.
    pub after_results: Vec<u8>,
}

impl Fragment {
    pub(crate) fn new(turn: WireTurn) -> Self {
        Self { turn, results: Vec::new(), items: Vec::new(), after_results: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty() && self.items.is_empty() && self.after_results.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.results.len() + self.items.len() + self.after_results.len()
    }
}

type Key = (ContentHash, CacheMark);

/// Content hashes are random bits already: mixing them again would cost more than the look-up.
#[derive(Clone, Copy, Debug, Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = self.0.rotate_left(7) ^ u64::from_le_bytes(word);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A fragment, and the request that used it last.
#[derive(Debug)]
struct CachedFragment<T> {
    fragment: Arc<T>,
    used: u64,
}

/// Fragments of the last request and of the one being encoded.
#[derive(Debug)]
pub(crate) struct Fragments<T> {
    known: HashMap<Key, CachedFragment<T>, BuildHasherDefault<AlreadyHashed>>,
    request: u64,
    /// How many of them the present request used.
    used: usize,
}

impl<T> Default for Fragments<T> {
    fn default() -> Self {
        Self { known: HashMap::default(), request: 0, used: 0 }
    }
}

impl<T> Fragments<T> {
    /// The fragment under this key, made only if the last request did not hold it.
    pub(crate) fn get(&mut self, key: Key, make: impl FnOnce() -> T) -> Arc<T> {
        // One before the present request at most: never the present one by accident.
        let before = self.request.wrapping_sub(1);
        let known =
            self.known.entry(key).or_insert_with(|| CachedFragment { fragment: Arc::new(make()), used: before });
        if known.used != self.request {
            known.used = self.request;
            self.used += 1;
        }
        Arc::clone(&known.fragment)
    }

    /// Ends a request: what it did not use is forgotten.
    pub(crate) fn end_request(&mut self) {
        if self.used < self.known.len() {
            self.known.retain(|_, known| known.used == self.request);
        }
        self.request = self.request.wrapping_add(1);
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_is_made_once_and_kept_while_it_is_used() {
        let mut fragments = Fragments::default();
        let mut made = Vec::new();
        for request in [vec!["a", "b"], vec!["a", "b", "c", "c"], vec!["c"], vec!["a", "c"]] {
            for name in request {
                let key = (ContentHash::of(name.as_bytes()), CacheMark::None);
                let fragment = fragments.get(key, || {
                    made.push(name);
                    name.to_owned()
                });
                assert_eq!(*fragment, name);
            }
            fragments.end_request();
        }
        assert_eq!(made, ["a", "b", "c", "a"]);
        // What the last request held is all that is left.
        let mut left: Vec<_> = fragments.known.values().map(|known| known.fragment.as_str()).collect();
        left.sort_unstable();
        assert_eq!(left, ["a", "c"]);
    }

    #[test]
    fn a_marked_fragment_is_another_one() {
        let mut fragments = Fragments::default();
        let hash = ContentHash::of(b"a");
        assert_eq!(*fragments.get((hash, CacheMark::None), || 1), 1);
        assert_eq!(*fragments.get((hash, CacheMark::Boundary), || 2), 2);
    }
}
