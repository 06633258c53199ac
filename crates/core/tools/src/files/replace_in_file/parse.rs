//! From the text of a call to its blocks.

use crate::failure::Coded;
use crate::visible;

const SEARCH: &str = "<<<<<<< SEARCH";
const SEPARATOR: &str = "=======";
const REPLACE: &str = ">>>>>>> REPLACE";

/// One change: these lines become those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SearchReplaceBlock {
    pub(super) search: Vec<String>,
    pub(super) replace: Vec<String>,
}

/// A `diff` that is not a list of blocks. Lines are those of the `diff`, from 1.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BlockParseError {
    #[error(
        "`diff` holds no SEARCH/REPLACE block; a block starts with a line `{SEARCH}`, has a line `{SEPARATOR}` between both parts and ends with a line `{REPLACE}`"
    )]
    NoBlocks,
    #[error("line {line} of `diff` stands outside any block: `{text}`; a block starts with a line `{SEARCH}`")]
    Outside { line: usize, text: String },
    #[error("block {block} of `diff` is not finished: the line `{missing}` is missing before line {line}")]
    Unfinished { block: usize, line: usize, missing: &'static str },
    #[error(
        "block {block} of `diff` has a second line `{SEPARATOR}` (line {line}); such a line can be in neither part, choose lines around it"
    )]
    SecondSeparator { block: usize, line: usize },
}

impl Coded for BlockParseError {
    fn code(&self) -> &'static str {
        "invalid_diff"
    }
}

enum BlockPosition {
    Outside,
    Search(SearchReplaceBlock),
    Replace(SearchReplaceBlock),
}

/// The blocks of a `diff`, in order. Every marker stands alone on its line, so nothing is guessed.
pub(super) fn parse(diff: &str) -> Result<Vec<SearchReplaceBlock>, BlockParseError> {
    let mut blocks = Vec::new();
    let mut at = BlockPosition::Outside;
    let mut last = 0;
    for (index, text) in diff.lines().enumerate() {
        last = index + 1;
        let (line, block) = (last, blocks.len() + 1);
        let unfinished = |missing| BlockParseError::Unfinished { block, line, missing };
        at = match (at, text.trim_end()) {
            (BlockPosition::Outside, SEARCH) => BlockPosition::Search(SearchReplaceBlock::default()),
            (BlockPosition::Outside, "") => BlockPosition::Outside,
            (BlockPosition::Outside, other) => {
                return Err(BlockParseError::Outside {
                    line,
                    text: visible::prefix(&visible::line(other), 80).to_owned(),
                });
            }
            (BlockPosition::Search(block), SEPARATOR) => BlockPosition::Replace(block),
            (BlockPosition::Search(_), SEARCH | REPLACE) => return Err(unfinished(SEPARATOR)),
            (BlockPosition::Search(mut block), _) => {
                block.search.push(text.to_owned());
                BlockPosition::Search(block)
            }
            (BlockPosition::Replace(block), REPLACE) => {
                blocks.push(block);
                BlockPosition::Outside
            }
            (BlockPosition::Replace(_), SEARCH) => return Err(unfinished(REPLACE)),
            (BlockPosition::Replace(_), SEPARATOR) => return Err(BlockParseError::SecondSeparator { block, line }),
            (BlockPosition::Replace(mut block), _) => {
                block.replace.push(text.to_owned());
                BlockPosition::Replace(block)
            }
        };
    }
    let unfinished = |missing| Err(BlockParseError::Unfinished { block: blocks.len() + 1, line: last + 1, missing });
    match at {
        BlockPosition::Search(_) => unfinished(SEPARATOR),
        BlockPosition::Replace(_) => unfinished(REPLACE),
        BlockPosition::Outside if blocks.is_empty() => Err(BlockParseError::NoBlocks),
        BlockPosition::Outside => Ok(blocks),
    }
}
