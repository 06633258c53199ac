//! The bytes of messages that were sent before, kept by content.
//!
//! Invariant: a fragment depends on nothing but the message's content hash and its mark (the encoder's settings never
//! change), so equal segments give equal bytes. Only what the last request used is kept.

use std::collections::HashMap;
use std::sync::Arc;

use haft_types::ContentHash;

/// Whether the provider's cache should have an entry that ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mark {
    /// Nothing special.
    None,
    /// A cache marker.
    Boundary,
}

/// Whose turn a fragment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    User,
    Assistant,
}

/// The wire form of one message: comma-separated pieces, without a comma at either end.
#[derive(Debug)]
pub(crate) struct Fragment {
    /// Whose turn it belongs to.
    pub turn: Turn,
    /// Tool results: in a turn they stand before everything else.
    pub results: Vec<u8>,
    /// Everything else.
    pub items: Vec<u8>,
    /// What belongs to a tool result but may only follow the last result of its block.
    pub after_results: Vec<u8>,
}

impl Fragment {
    pub(crate) fn new(turn: Turn) -> Self {
        Self { turn, results: Vec::new(), items: Vec::new(), after_results: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty() && self.items.is_empty() && self.after_results.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.results.len() + self.items.len() + self.after_results.len()
    }
}

type Key = (ContentHash, Mark);

/// Fragments of the last request, and those of the one being encoded.
#[derive(Debug)]
pub(crate) struct Fragments<T> {
    last: HashMap<Key, Arc<T>>,
    next: HashMap<Key, Arc<T>>,
}

impl<T> Default for Fragments<T> {
    fn default() -> Self {
        Self { last: HashMap::new(), next: HashMap::new() }
    }
}

impl<T> Fragments<T> {
    /// The fragment under this key, made only if the last request did not hold it.
    pub(crate) fn get(&mut self, key: Key, make: impl FnOnce() -> T) -> Arc<T> {
        let fragment = self.next.entry(key).or_insert_with(|| match self.last.remove(&key) {
            Some(known) => known,
            None => Arc::new(make()),
        });
        Arc::clone(fragment)
    }

    /// Ends a request: what it did not use is forgotten.
    pub(crate) fn end_request(&mut self) {
        self.last = std::mem::take(&mut self.next);
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
                let key = (ContentHash::of(name.as_bytes()), Mark::None);
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
        let mut left: Vec<_> = fragments.last.values().map(|name| name.as_str()).collect();
        left.sort_unstable();
        assert_eq!(left, ["a", "c"]);
    }

    #[test]
    fn a_marked_fragment_is_another_one() {
        let mut fragments = Fragments::default();
        let hash = ContentHash::of(b"a");
        assert_eq!(*fragments.get((hash, Mark::None), || 1), 1);
        assert_eq!(*fragments.get((hash, Mark::Boundary), || 2), 2);
    }
}
