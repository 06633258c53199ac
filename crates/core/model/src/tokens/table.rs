//! The vocabulary and the character classes, in the layout that `build.rs` writes, in the binary's
//! read-only data.

use super::layout::{CLASS_BLOCK, RANK_BITS, SLOTS, home};

static TOKEN_BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.bytes"));
static TOKEN_OFFSETS: &[[u8; 4]] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.offsets"))
    .as_chunks()
    .0;
static HASH_SLOTS: &[[u8; 4]] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.slots"))
    .as_chunks()
    .0;
static CLASS_INDEX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.index"));
static CLASS_BLOCKS: &[[u8; CLASS_BLOCK]] =
    include_bytes!(concat!(env!("OUT_DIR"), "/classes.blocks"))
        .as_chunks()
        .0;

/// Returns the rank of the token with these bytes, if there is one.
pub(super) fn token_rank(bytes: &[u8]) -> Option<u32> {
    let (mut slot, mark) = home(bytes);
    loop {
        let entry = u32::from_le_bytes(HASH_SLOTS[slot]);
        if entry == 0 {
            return None;
        }
        if entry >> RANK_BITS == mark {
            let rank = (entry & ((1 << RANK_BITS) - 1)) - 1;
            if token_bytes(rank) == bytes {
                return Some(rank);
            }
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// Returns the class of a character, one of the constants in `layout::class`.
pub(super) fn char_class(character: char) -> u8 {
    let point = character as usize;
    CLASS_BLOCKS[usize::from(CLASS_INDEX[point / CLASS_BLOCK])][point % CLASS_BLOCK]
}

/// Returns the class of a character below U+0080. Faster than [`char_class`], because the first
/// block of the table is always block 0.
pub(super) fn ascii_class(byte: u8) -> u8 {
    CLASS_BLOCKS[0][usize::from(byte)]
}

fn token_bytes(rank: u32) -> &'static [u8] {
    let offset = |index: usize| u32::from_le_bytes(TOKEN_OFFSETS[index]) as usize;
    &TOKEN_BYTES[offset(rank as usize)..offset(rank as usize + 1)]
}
