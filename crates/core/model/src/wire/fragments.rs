//! Reuses the bytes of messages that were sent before: they are copied from the last body.
//!
//! Invariant: a fragment depends on nothing but the message's content hash and its mark (the
//! encoder's settings never change), so equal segments give equal bytes. Only the last body is
//! kept, with the position of each message in it.

use bytes::Bytes;
use haft_types::ContentHash;

/// The cache marker at the end of a message, or `None` without one. The provider caches the prefix
/// that ends at the marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CacheMark {
    None,
    /// The last piece of the message has a cache marker.
    Boundary,
}

/// The author of the turn that a fragment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireTurn {
    User,
    Assistant,
}

/// The wire form of one message: comma-separated pieces, without a comma at either end.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub turn: WireTurn,
    /// The message's tool results. In a turn, results precede everything else.
    pub results: Vec<u8>,
    /// All pieces of the message that are neither in `results` nor in `after_results`.
    pub items: Vec<u8>,
    /// Pieces that belong to a tool result but may only be sent after the last result of its block.
    pub after_results: Vec<u8>,
}

impl Fragment {
    pub(crate) fn new(turn: WireTurn) -> Self {
        Self {
            turn,
            results: Vec::new(),
            items: Vec::new(),
            after_results: Vec::new(),
        }
    }
}

/// The identity of a fragment: the content hash, the cache mark, and a flag that is true if the
/// fragment is inside the frame of the system text.
pub(super) type Key = (ContentHash, CacheMark, bool);

/// The kinds of pieces in a fragment, as indices of [`Placed::pieces`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece {
    Results,
    AfterResults,
    Items,
}

/// A fragment's positions in a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) turn: WireTurn,
    /// True if the positions refer to `Fragments::made` rather than to the body of the last
    /// request.
    is_new: bool,
    /// The start and end of each piece. No body exceeds four gigabytes.
    pieces: [(u32, u32); 3],
}

impl Placed {
    pub(super) fn len(&self) -> usize {
        self.pieces
            .iter()
            .map(|(begin, end)| (end - begin) as usize)
            .sum()
    }

    pub(super) fn has_piece(&self, piece: Piece) -> bool {
        let (begin, end) = self.pieces[piece as usize];
        begin < end
    }
}

/// Appends bytes and returns the start and end of their new position.
fn append_bytes(to: &mut Vec<u8>, bytes: &[u8]) -> (u32, u32) {
    let begin = to.len() as u32;
    to.extend_from_slice(bytes);
    (begin, to.len() as u32)
}

/// The fragments of the last request, and those encoded for the next request.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    last: Bytes,
    made: Vec<u8>,
    known: Vec<(Key, Placed)>,
    /// The index in `known` at which the next search begins.
    next: usize,
}

impl Fragments {
    /// Returns the fragment with this key; calls `make` only if the last request did not contain
    /// the fragment. Consecutive requests hardly differ, so the search usually succeeds at its
    /// first comparison; only a new message makes it visit all fragments.
    pub(super) fn get_or_make(
        &mut self,
        key: Key,
        make: impl FnOnce() -> Fragment,
    ) -> (Key, Placed) {
        let (before, rest) = self.known.split_at(self.next);
        if let Some(offset) = rest
            .iter()
            .chain(before)
            .position(|(known, _)| *known == key)
        {
            let at = (self.next + offset) % self.known.len();
            self.next = at + 1;
            return self.known[at];
        }
        let Fragment {
            turn,
            results,
            items,
            after_results,
        } = make();
        let pieces =
            [&results, &after_results, &items].map(|piece| append_bytes(&mut self.made, piece));
        (
            key,
            Placed {
                turn,
                is_new: true,
                pieces,
            },
        )
    }

    /// Copies a piece of a fragment to `body` and records its new position.
    pub(super) fn write_piece(&self, body: &mut Vec<u8>, placed: &mut Placed, piece: Piece) {
        let from = if placed.is_new {
            self.made.as_slice()
        } else {
            &self.last
        };
        let (begin, end) = placed.pieces[piece as usize];
        placed.pieces[piece as usize] = append_bytes(body, &from[begin as usize..end as usize]);
    }

    /// Ends a request. Keeps only the request's body and the fragments in it.
    pub(super) fn end_request(&mut self, body: &Bytes, mut written: Vec<(Key, Placed)>) {
        for (_, placed) in &mut written {
            placed.is_new = false;
        }
        *self = Self {
            last: body.clone(),
            known: written,
            ..Self::default()
        };
    }
}
