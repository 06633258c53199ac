//! Writes the o200k vocabulary and the character classes of its pattern as flat tables into
//! `OUT_DIR`, for `src/tokens/table.rs` to embed.
//!
//! The tables are built at compile time because the `tiktoken` crate unpacks its vocabulary into a
//! hash map on first use, which costs more time and memory than haft's whole start-up may. A table
//! in the binary's read-only data has no load time, and only the pages that a text touches become
//! resident.
//!
//! Both sources are the reference's own: the tokens come from `tiktoken`, the character classes
//! from `regex-syntax`, which compiles the reference's pattern. So the tables and the reference use
//! one Unicode version.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use layout::{CLASS_BLOCK, RANK_BITS, SLOTS, class, home};
use regex_syntax::hir::{Class, HirKind};

#[path = "src/tokens/layout.rs"]
mod layout;

/// The number of ordinary tokens of `o200k_base`. Tokens with higher ranks are special; haft counts
/// their text as plain text.
const TOKEN_COUNT: u32 = 199_998;

/// The maximum length of a token in bytes: the merge stores each length in one byte.
const MAX_TOKEN_LEN: usize = u8::MAX as usize;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/tokens/layout.rs");
    let out =
        PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run this through cargo")?);
    let tokens = read_tokens()?;
    write_tokens(&out, &tokens)?;
    write_slots(&out, &tokens)?;
    write_char_classes(&out)?;
    Ok(())
}

/// Returns the bytes of every token, ordered by rank.
fn read_tokens() -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let encoding = tiktoken::get_encoding("o200k_base")
        .ok_or("tiktoken was built without vocab-o200k_base")?;
    let tokens: Vec<Vec<u8>> = (0..TOKEN_COUNT)
        .map(|rank| encoding.decode(&[rank]))
        .collect();
    if let Some(rank) = tokens
        .iter()
        .position(|token| token.is_empty() || token.len() > MAX_TOKEN_LEN)
    {
        return Err(format!(
            "token {rank} of o200k_base has {} bytes, expected 1 to {MAX_TOKEN_LEN}",
            tokens[rank].len()
        )
        .into());
    }
    Ok(tokens)
}

/// Writes the bytes of all tokens one after another, and the offset of each token. The number of
/// offsets is the number of tokens plus one, so that the last token has an end.
fn write_tokens(out: &Path, tokens: &[Vec<u8>]) -> Result<(), Box<dyn Error>> {
    let mut offsets = Vec::with_capacity((tokens.len() + 1) * 4);
    let mut end = 0_u32;
    offsets.extend(end.to_le_bytes());
    for token in tokens {
        end += u32::try_from(token.len())?;
        offsets.extend(end.to_le_bytes());
    }
    fs::write(out.join("o200k.bytes"), tokens.concat())?;
    fs::write(out.join("o200k.offsets"), offsets)?;
    Ok(())
}

/// Writes the hash table, which uses open addressing with linear probing. Tokens are inserted by
/// rank, so that common tokens are closest to their home slot.
fn write_slots(out: &Path, tokens: &[Vec<u8>]) -> Result<(), Box<dyn Error>> {
    let mut slots = vec![0_u32; SLOTS];
    for (rank, token) in (0_u32..).zip(tokens) {
        let (mut slot, mark) = home(token);
        while slots[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        slots[slot] = mark << RANK_BITS | (rank + 1);
    }
    fs::write(
        out.join("o200k.slots"),
        slots
            .iter()
            .flat_map(|slot| slot.to_le_bytes())
            .collect::<Vec<u8>>(),
    )?;
    Ok(())
}

/// Writes the class of every code point in two levels: a block number for each `CLASS_BLOCK` code
/// points, then the distinct blocks.
fn write_char_classes(out: &Path) -> Result<(), Box<dyn Error>> {
    let mut classes = vec![class::OTHER; char::MAX as usize + 1];
    for (pattern, class) in [
        (r"[\p{Lu}\p{Lt}]", class::UPPER),
        (r"\p{Ll}", class::LOWER),
        (r"[\p{Lm}\p{Lo}]", class::CASELESS),
        (r"\p{M}", class::MARK),
        (r"\p{N}", class::NUMBER),
        (r"\s", class::SPACE),
        (r"[\r\n]", class::NEWLINE),
    ] {
        for (first, last) in class_ranges(pattern)? {
            classes[first as usize..=last as usize].fill(class);
        }
    }
    let mut index = Vec::new();
    let mut blocks: Vec<&[u8]> = Vec::new();
    for block in classes.chunks(CLASS_BLOCK) {
        let number = blocks
            .iter()
            .position(|known| *known == block)
            .unwrap_or_else(|| {
                blocks.push(block);
                blocks.len() - 1
            });
        index.push(u8::try_from(number)?);
    }
    fs::write(out.join("classes.index"), index)?;
    fs::write(out.join("classes.blocks"), blocks.concat())?;
    Ok(())
}

/// Returns the ranges of code points that a regular expression of one character class matches.
fn class_ranges(pattern: &str) -> Result<Vec<(char, char)>, Box<dyn Error>> {
    let hir = regex_syntax::parse(pattern)?;
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => Ok(class
            .iter()
            .map(|range| (range.start(), range.end()))
            .collect()),
        other => Err(format!("`{pattern}` is not a class of characters but {other:?}").into()),
    }
}
