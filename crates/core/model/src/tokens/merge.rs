//! Counts the tokens of one piece by byte-pair merging: of all neighbours that together are a
//! token, the pair of the lowest rank is joined first, the leftmost of equals, until none is left.
//!
//! A piece is nearly always a word, and nearly always a token. Short ones that are not are merged
//! by scanning a small array on the stack. Long ones (a line of `=`, a minified file) would cost
//! quadratic time that way, so they go through a queue. Both join in the same order, so they give
//! the same count.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::table;

/// Up to this many bytes the scan is quicker than the queue.
const SHORT: usize = 96;

/// Longer pieces are cut here, which may add a token at each cut. The queue needs up to 18 bytes
/// for each byte of a piece, and no count is worth more memory than the rest of haft takes.
const LONGEST: usize = 256 * 1024;

/// No token.
const NONE: u32 = u32::MAX;

/// Counts pieces, keeping the memory that long ones need from one to the next.
#[derive(Default)]
pub(super) struct Merger {
    /// At the first byte of each token its length; 0 at all others.
    starts: Vec<u8>,
    /// At the last byte of each token its length; anything at all others.
    ends: Vec<u8>,
    queue: BinaryHeap<Reverse<Join>>,
}

/// What merging one long piece came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MergeResult {
    /// The tokens left.
    pub(super) tokens: u32,
    /// How many joins were taken off the queue: the measure of the work.
    pub(super) steps: u32,
}

/// A possible join, ordered by rank, then place. It holds where the left token begins and the
/// length of both together, in one number so that the queue compares and moves little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Join(u64);

impl Join {
    fn new(rank: u32, at: usize, len: usize) -> Self {
        Self(u64::from(rank) << 40 | (at as u64) << 8 | len as u64)
    }

    fn at(self) -> usize {
        (self.0 >> 8) as u32 as usize
    }

    fn len(self) -> usize {
        self.0 as u8 as usize
    }
}

impl Merger {
    /// The tokens of a piece.
    pub(super) fn count(&mut self, piece: &[u8]) -> u32 {
        // Asked first, because not every token comes out of merging its own bytes.
        if table::rank(piece).is_some() {
            return 1;
        }
        if piece.len() <= SHORT {
            return short(piece);
        }
        // A run of one character or one pattern gives the same chunk again and again.
        let mut last: Option<(&[u8], u32)> = None;
        let counted = piece.chunks(LONGEST).map(|chunk| {
            let tokens = last
                .filter(|(same, _)| *same == chunk)
                .map_or_else(|| self.long(chunk).tokens, |(_, tokens)| tokens);
            last = Some((chunk, tokens));
            tokens
        });
        counted.sum()
    }

    /// Merges by a queue of joins, in O(n log n).
    ///
    /// A join in the queue may be out of date. Tokens only ever grow, so it still holds exactly if
    /// a token begins at its place and that and the next are together as long as they were.
    pub(super) fn long(&mut self, piece: &[u8]) -> MergeResult {
        self.starts.clear();
        self.starts.resize(piece.len(), 1);
        self.ends.clear();
        self.ends.resize(piece.len(), 1);
        // Made from a list in one go, which is linear; pushing one by one is not.
        let mut joins = std::mem::take(&mut self.queue).into_vec();
        joins.clear();
        joins.extend(
            piece
                .windows(2)
                .enumerate()
                .filter_map(|(at, pair)| Some(Reverse(Join::new(table::rank(pair)?, at, 2)))),
        );
        self.queue = joins.into();

        let mut merged = MergeResult {
            tokens: piece.len() as u32,
            steps: 0,
        };
        while let Some(Reverse(join)) = self.queue.pop() {
            merged.steps += 1;
            let at = join.at();
            let len = join.len();
            let left = usize::from(self.starts[at]);
            let right = self.starts.get(at + left).copied().map_or(0, usize::from);
            if left == 0 || right == 0 || left + right != len {
                continue;
            }
            self.starts[at + left] = 0;
            self.starts[at] = len as u8;
            self.ends[at + len - 1] = len as u8;
            merged.tokens -= 1;
            if at > 0 {
                let before = usize::from(self.ends[at - 1]);
                self.offer(piece, at - before, before + len);
            }
            if let Some(after) = self.starts.get(at + len).copied() {
                self.offer(piece, at, len + usize::from(after));
            }
        }
        merged
    }

    /// Queues a join if it makes a token.
    fn offer(&mut self, piece: &[u8], at: usize, len: usize) {
        if let Some(rank) = table::rank(&piece[at..at + len]) {
            self.queue.push(Reverse(Join::new(rank, at, len)));
        }
    }
}

/// Merges at most `SHORT` bytes by looking for the lowest rank again after each join.
pub(super) fn short(piece: &[u8]) -> u32 {
    // Token i is `bounds[i]..bounds[i + 1]`, and `ranks[i]` is that of it joined with the next.
    let mut bounds = [0_u8; SHORT + 1];
    let mut ranks = [NONE; SHORT];
    let mut tokens = piece.len();
    for (bound, place) in bounds.iter_mut().zip(0..=piece.len()) {
        *bound = place as u8;
    }
    for (rank, pair) in ranks.iter_mut().zip(piece.windows(2)) {
        *rank = table::rank(pair).unwrap_or(NONE);
    }
    while tokens > 1 {
        let mut at = 0;
        let mut lowest = NONE;
        for (index, &rank) in ranks[..tokens - 1].iter().enumerate() {
            if rank < lowest {
                (at, lowest) = (index, rank);
            }
        }
        if lowest == NONE {
            break;
        }
        bounds.copy_within(at + 2..=tokens, at + 1);
        ranks.copy_within(at + 1..tokens - 1, at);
        tokens -= 1;
        let rank_at = |index: usize| {
            let joined = usize::from(bounds[index])..usize::from(bounds[index + 2]);
            table::rank(&piece[joined]).unwrap_or(NONE)
        };
        if at + 1 < tokens {
            ranks[at] = rank_at(at);
        }
        if at > 0 {
            ranks[at - 1] = rank_at(at - 1);
        }
    }
    tokens as u32
}
