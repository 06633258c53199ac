//! The layout of the tables that the build script writes and `table` reads. Both compile this file.

/// The number of slots in the hash table: about twice the number of tokens, so that a search for a
/// missing token ends after two or three probes.
pub(crate) const SLOTS: usize = 3 << 17;

/// The number of lower bits of a slot, which contain a token's rank plus one (0 marks a free slot).
/// The upper bits contain part of the token's hash, which makes most comparisons of bytes
/// unnecessary.
pub(crate) const RANK_BITS: u32 = 18;

/// The number of code points in one block of the class table.
pub(crate) const CLASS_BLOCK: usize = 256;

/// The character classes that the pattern distinguishes, one bit each, so that a set of classes is
/// one number.
pub(crate) mod class {
    /// Upper-case and title-case letters, `\p{Lu}` and `\p{Lt}`.
    pub(crate) const UPPER: u8 = 1;
    /// Lower-case letters, `\p{Ll}`.
    pub(crate) const LOWER: u8 = 1 << 1;
    /// Letters that count as either case, `\p{Lm}` and `\p{Lo}`.
    pub(crate) const CASELESS: u8 = 1 << 2;
    /// Combining marks, `\p{M}`. They count as either case, but not as letters.
    pub(crate) const MARK: u8 = 1 << 3;
    /// Numbers, `\p{N}`.
    pub(crate) const NUMBER: u8 = 1 << 4;
    /// White space except line breaks: `\s` without `\r` and `\n`.
    pub(crate) const SPACE: u8 = 1 << 5;
    /// Line breaks: `\r` and `\n`.
    pub(crate) const NEWLINE: u8 = 1 << 6;
    /// All other characters: punctuation, symbols, control characters, unassigned code points.
    pub(crate) const OTHER: u8 = 1 << 7;
}

/// Returns the slot at which the search for the token `bytes` begins, and the part of its hash that
/// is stored in the upper bits of its slot.
pub(crate) fn home(bytes: &[u8]) -> (usize, u32) {
    let hash = hash(bytes);
    // The upper half scaled to the number of slots, and bits of the lower half.
    let slot = ((hash >> 32) * SLOTS as u64) >> 32;
    (slot as usize, hash as u32 >> RANK_BITS)
}

/// Returns a multiplicative hash, computed from eight bytes at a time. A stronger hash is not
/// needed: tokens are short, and no input can add tokens that collide.
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
