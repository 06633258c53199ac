//! The bytes of messages that were sent before: they stand in the last body, and are copied from
//! there.
//!
//! Invariant: a fragment depends on nothing but the message's content hash and its mark (the
//! encoder's settings never change), so equal segments give equal bytes. Only the last body is
//! kept, and where in it each message stands.

use bytes::Bytes;
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
        Self {
            turn,
            results: Vec::new(),
            items: Vec::new(),
            after_results: Vec::new(),
        }
    }
}

/// What a fragment depends on: content, mark, and whether it stands in the frame of the system
/// text.
pub(super) type Key = (ContentHash, CacheMark, bool);

/// The pieces of a fragment, as places of [`Placed::pieces`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece {
    Results,
    AfterResults,
    Items,
}

/// A fragment by reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) turn: WireTurn,
    /// Whether it stands among those just made, rather than in the last body.
    is_new: bool,
    /// Begin and end of each. No body of four gigabytes is ever sent.
    pieces: [(u32, u32); 3],
}

impl Placed {
    pub(super) fn len(&self) -> usize {
        self.pieces
            .iter()
            .map(|(begin, end)| (end - begin) as usize)
            .sum()
    }

    pub(super) fn has(&self, piece: Piece) -> bool {
        let (begin, end) = self.pieces[piece as usize];
        begin < end
    }
}

/// Writes bytes, and says where they stand now.
fn write(to: &mut Vec<u8>, bytes: &[u8]) -> (u32, u32) {
    let begin = to.len() as u32;
    to.extend_from_slice(bytes);
    (begin, to.len() as u32)
}

/// The fragments of the last request, and those that are made for the next.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    last: Bytes,
    made: Vec<u8>,
    known: Vec<(Key, Placed)>,
    /// Where the next one is looked for first.
    next: usize,
}

impl Fragments {
    /// The fragment under this key, made only if the last request did not hold it. Requests agree
    /// but for little, so nearly always it is the next one; only for what is new all are looked
    /// at.
    pub(super) fn get(&mut self, key: Key, make: impl FnOnce() -> Fragment) -> (Key, Placed) {
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
        let pieces = [&results, &after_results, &items].map(|piece| write(&mut self.made, piece));
        (
            key,
            Placed {
                turn,
                is_new: true,
                pieces,
            },
        )
    }

    /// Writes a piece of a fragment, which from then on stands there.
    pub(super) fn write(&self, body: &mut Vec<u8>, placed: &mut Placed, piece: Piece) {
        let from = if placed.is_new {
            self.made.as_slice()
        } else {
            &self.last
        };
        let (begin, end) = placed.pieces[piece as usize];
        placed.pieces[piece as usize] = write(body, &from[begin as usize..end as usize]);
    }

    /// Ends a request: its body and what stands in it are all that is remembered.
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
