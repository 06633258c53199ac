//! What the build script writes and `table` reads: the one place that both compile.

/// Slots of the hash table: about twice the tokens, so that a search for what is no token ends
/// after two or three.
pub(crate) const SLOTS: usize = 3 << 17;

/// The lower bits of a slot hold a rank plus one (0 is a free slot), the others a mark that spares
/// most comparisons of bytes.
pub(crate) const RANK_BITS: u32 = 18;

/// Code points in one block of the table of classes.
pub(crate) const CLASS_BLOCK: usize = 256;

/// What the pattern tells apart, one bit each so that a set of them is one number.
pub(crate) mod class {
    /// `\p{Lu}` and `\p{Lt}`.
    pub(crate) const UPPER: u8 = 1;
    /// `\p{Ll}`.
    pub(crate) const LOWER: u8 = 1 << 1;
    /// `\p{Lm}` and `\p{Lo}`: letters that go with either case.
    pub(crate) const CASELESS: u8 = 1 << 2;
    /// `\p{M}`: goes with either case too, but is no letter.
    pub(crate) const MARK: u8 = 1 << 3;
    /// `\p{N}`.
    pub(crate) const NUMBER: u8 = 1 << 4;
    /// `\s` but `\r` and `\n`.
    pub(crate) const SPACE: u8 = 1 << 5;
    /// `\r` and `\n`.
    pub(crate) const NEWLINE: u8 = 1 << 6;
    /// Everything else: punctuation, symbols, control characters, what Unicode has not assigned.
    pub(crate) const OTHER: u8 = 1 << 7;
}

/// The slot where the search for these bytes begins, and the mark that a slot of theirs bears.
pub(crate) fn home(bytes: &[u8]) -> (usize, u32) {
    let hash = hash(bytes);
    // The upper half scaled to the number of slots, and bits of the lower half.
    let slot = ((hash >> 32) * SLOTS as u64) >> 32;
    (slot as usize, hash as u32 >> RANK_BITS)
}

/// A multiplicative hash, eight bytes at a time: tokens are short, and nobody can choose them to
/// collide.
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| {
        let product = (hash ^ word).wrapping_mul(FACTOR);
        product ^ (product >> 32)
    };
    let (chunks, rest) = bytes.as_chunks::<8>();
    let hash = chunks.iter().fold(bytes.len() as u64, |hash, chunk| {
        mix(hash, u64::from_le_bytes(*chunk))
    });
    let tail = rest
        .iter()
        .fold(0, |tail, byte| tail << 8 | u64::from(*byte));
    // Mixed once more, because the last bytes have only reached the upper half.
    mix(mix(hash, tail), 0)
}
