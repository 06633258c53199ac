//! Counts the tokens of one piece by byte-pair merging: of all neighbors that together are a token,
//! the pair with the lowest rank is joined first, the leftmost among equals, until no pair is left.
//!
//! A piece is nearly always a word and nearly always a token. Short pieces that are not are merged
//! by scanning a small array on the stack. Long ones (a line of `=`, a minified file) would take
//! quadratic time that way, so they go through a queue. Both ways join in one order, so they give
//! equal counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::table;

/// The maximum size, in bytes, of a piece for which scanning is faster than a queue.
const MAX_SCANNED_BYTES: usize = 96;

/// The size, in bytes, at which a longer piece is cut. Each cut may add a token to the count. The
/// queue needs up to 18 bytes per byte of a piece, and no count is worth more memory than the rest
/// of haft takes.
const MAX_PIECE_BYTES: usize = 256 * 1024;

/// The rank of a pair that does not form a token.
const NO_RANK: u32 = u32::MAX;

/// Counts the tokens of pieces of text. Keeps its buffers, so that all long pieces share them.
#[derive(Default)]
pub(super) struct Merger {
    /// The length of each token at the index of its first byte; 0 at all other indices.
    starts: Vec<u8>,
    /// The length of each token at the index of its last byte; undefined at all other indices.
    ends: Vec<u8>,
    queue: BinaryHeap<Reverse<Join>>,
}

/// The result of merging one long piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MergeResult {
    /// The number of tokens that remain after merging.
    pub(super) tokens: u32,
    /// The number of joins taken from the queue, as a measure of the work.
    pub(super) steps: u32,
}

/// Two adjacent tokens that could be joined, ordered by the rank of the joined token, then by
/// position. The rank, the start of the left token and the total length are packed into one number,
/// which is cheap to compare and move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Join(u64);

impl Join {
    fn new(rank: u32, at: usize, len: usize) -> Self {
        Self(u64::from(rank) << 40 | (at as u64) << 8 | len as u64)
    }

    fn start(self) -> usize {
        (self.0 >> 8) as u32 as usize
    }

    fn len(self) -> usize {
        self.0 as u8 as usize
    }
}

impl Merger {
    /// Returns the number of tokens of a piece.
    pub(super) fn count_tokens(&mut self, piece: &[u8]) -> u32 {
        // Checked first, because merging the bytes of a token does not always yield that token.
        if table::token_rank(piece).is_some() {
            return 1;
        }
        if piece.len() <= MAX_SCANNED_BYTES {
            return merge_short(piece);
        }
        // A run of one character or one pattern repeats one chunk many times.
        let mut last: Option<(&[u8], u32)> = None;
        let counted = piece.chunks(MAX_PIECE_BYTES).map(|chunk| {
            let tokens = last
                .filter(|(same, _)| *same == chunk)
                .map_or_else(|| self.merge_long(chunk).tokens, |(_, tokens)| tokens);
            last = Some((chunk, tokens));
            tokens
        });
        counted.sum()
    }

    /// Merges the bytes of a piece into tokens in O(n log n), with a queue of joins.
    ///
    /// A join in the queue may be out of date. Because tokens only grow, a join is still valid
    /// exactly if a token begins at its start, and if that token and the next one together have the
    /// length of the join.
    pub(super) fn merge_long(&mut self, piece: &[u8]) -> MergeResult {
        self.starts.clear();
        self.starts.resize(piece.len(), 1);
        self.ends.clear();
        self.ends.resize(piece.len(), 1);
        // Building the heap from a list is linear; pushing one by one is not.
        let mut joins = std::mem::take(&mut self.queue).into_vec();
        joins.clear();
        joins.extend(
            piece
                .windows(2)
                .enumerate()
                .filter_map(|(at, pair)| Some(Reverse(Join::new(table::token_rank(pair)?, at, 2)))),
        );
        self.queue = joins.into();

        let mut merged = MergeResult {
            tokens: piece.len() as u32,
            steps: 0,
        };
        while let Some(Reverse(join)) = self.queue.pop() {
            merged.steps += 1;
            let at = join.start();
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
                self.queue_join(piece, at - before, before + len);
            }
            if let Some(after) = self.starts.get(at + len).copied() {
                self.queue_join(piece, at, len + usize::from(after));
            }
        }
        merged
    }

    /// Adds the join of the `len` bytes at `at` to the queue if these bytes are a token.
    fn queue_join(&mut self, piece: &[u8], at: usize, len: usize) {
        if let Some(rank) = table::token_rank(&piece[at..at + len]) {
            self.queue.push(Reverse(Join::new(rank, at, len)));
        }
    }
}

/// Counts the tokens of at most [`MAX_SCANNED_BYTES`] bytes by scanning for the lowest rank after
/// each join.
pub(super) fn merge_short(piece: &[u8]) -> u32 {
    // Token i is `bounds[i]..bounds[i + 1]`, and `ranks[i]` is the rank of token i joined with the
    // next one.
    let mut bounds = [0_u8; MAX_SCANNED_BYTES + 1];
    let mut ranks = [NO_RANK; MAX_SCANNED_BYTES];
    let mut tokens = piece.len();
    for (bound, place) in bounds.iter_mut().zip(0..=piece.len()) {
        *bound = place as u8;
    }
    for (rank, pair) in ranks.iter_mut().zip(piece.windows(2)) {
        *rank = table::token_rank(pair).unwrap_or(NO_RANK);
    }
    while tokens > 1 {
        let mut at = 0;
        let mut lowest = NO_RANK;
        for (index, &rank) in ranks[..tokens - 1].iter().enumerate() {
            if rank < lowest {
                (at, lowest) = (index, rank);
            }
        }
        if lowest == NO_RANK {
            break;
        }
        bounds.copy_within(at + 2..=tokens, at + 1);
        ranks.copy_within(at + 1..tokens - 1, at);
        tokens -= 1;
        let rank_at = |index: usize| {
            let joined = usize::from(bounds[index])..usize::from(bounds[index + 2]);
            table::token_rank(&piece[joined]).unwrap_or(NO_RANK)
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
