//! The properties that fuzzing and tests check on edits: SEARCH/REPLACE blocks, and blocks of lines
//! from any parser.

use super::blocks::{self, BlockLine, EditBlock, MatchPolicy};
use super::nearest::EditTerms;
use crate::files::replace_in_file::{SearchReplaceBlock, parse_diff};

const TERMS: EditTerms = EditTerms {
    old: "the block",
    new: "The new text",
    next: "",
};

/// Checks any `diff` of `replace_in_file` on any text: written anew, its blocks parse to equal
/// blocks, and [`check_edit_blocks`] holds for them.
///
/// # Panics
///
/// If the property does not hold.
pub fn check_search_replace(text: &str, diff: &str) {
    let Ok((blocks, _)) = parse_diff(diff) else {
        return;
    };
    let written: String = blocks.iter().map(write_block).collect();
    assert_eq!(
        parse_diff(&written).ok(),
        Some((blocks.clone(), false)),
        "{written:?}"
    );
    let blocks: Vec<_> = blocks
        .iter()
        .map(|block| EditBlock::from_replacement(&block.search, &block.replace))
        .collect();
    check_edit_blocks(text, &blocks);
}

/// Checks any blocks on any text: applying them never panics, and blocks that only keep lines
/// change nothing.
///
/// # Panics
///
/// If the property does not hold.
pub fn check_edit_blocks(text: &str, blocks: &[EditBlock]) {
    for policy in [MatchPolicy::Unique, MatchPolicy::First] {
        let _ = blocks::apply_blocks(text, blocks, policy, TERMS);
        let kept: Vec<_> = blocks.iter().map(to_unchanging_block).collect();
        if let Ok(applied) = blocks::apply_blocks(text, &kept, policy, TERMS) {
            assert_eq!(applied.text, text, "{kept:?}");
        }
    }
}

/// Returns the block with its searched lines kept and without its added lines.
fn to_unchanging_block(block: &EditBlock) -> EditBlock {
    let pieces = block.pieces.iter().filter_map(|piece| match piece {
        BlockLine::Keep(line) | BlockLine::Remove(line) => Some(BlockLine::Keep(line.clone())),
        BlockLine::Add(_) => None,
    });
    EditBlock {
        pieces: pieces.collect(),
        ..block.clone()
    }
}

/// Writes a block as a model would. Its lines end in CR LF, because a line may end in a carriage
/// return of its own.
fn write_block(SearchReplaceBlock { search, replace }: &SearchReplaceBlock) -> String {
    let join = |lines: &[String]| -> String {
        lines
            .iter()
            .flat_map(|line| [line.as_str(), "\r\n"])
            .collect()
    };
    format!(
        "<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n",
        join(search),
        join(replace)
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Every seed of the fuzz target, including its findings. A NUL separates text and diff.
    #[test]
    fn check_search_replace_holds_for_the_seeds_of_its_fuzz_target() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/search_replace");
        for entry in std::fs::read_dir(folder).unwrap() {
            let seed = std::fs::read(entry.unwrap().path()).unwrap();
            let seed = String::from_utf8_lossy(&seed);
            let (text, diff) = seed.split_once('\0').unwrap_or(("", &seed));
            super::check_search_replace(text, diff);
        }
    }
}
