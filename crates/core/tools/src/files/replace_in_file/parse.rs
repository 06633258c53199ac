//! From the text of a call to its blocks.

use crate::failure::Coded;
use crate::visible;

const SEARCH: &str = "<<<<<<< SEARCH";
const SEPARATOR: &str = "=======";
const REPLACE: &str = ">>>>>>> REPLACE";

/// One change: these lines become those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) search: Vec<String>,
    pub(super) replace: Vec<String>,
}

/// A `diff` that is not a list of blocks. Lines are those of the `diff`, from 1.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ParseError {
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

impl Coded for ParseError {
    fn code(&self) -> &'static str {
        "invalid_diff"
    }
}

enum At {
    Outside,
    Search(Block),
    Replace(Block),
}

/// The blocks of a `diff`, in order. Every marker stands alone on its line, so nothing is guessed.
pub(super) fn parse(diff: &str) -> Result<Vec<Block>, ParseError> {
    let mut blocks = Vec::new();
    let mut at = At::Outside;
    let mut last = 0;
    for (index, text) in diff.lines().enumerate() {
        last = index + 1;
        let (line, block) = (last, blocks.len() + 1);
        let unfinished = |missing| ParseError::Unfinished { block, line, missing };
        at = match (at, text.trim_end()) {
            (At::Outside, SEARCH) => At::Search(Block::default()),
            (At::Outside, "") => At::Outside,
            (At::Outside, other) => {
                return Err(ParseError::Outside { line, text: visible::prefix(&visible::line(other), 80).to_owned() });
            }
            (At::Search(block), SEPARATOR) => At::Replace(block),
            (At::Search(_), SEARCH | REPLACE) => return Err(unfinished(SEPARATOR)),
            (At::Search(mut block), _) => {
                block.search.push(text.to_owned());
                At::Search(block)
            }
            (At::Replace(block), REPLACE) => {
                blocks.push(block);
                At::Outside
            }
            (At::Replace(_), SEARCH) => return Err(unfinished(REPLACE)),
            (At::Replace(_), SEPARATOR) => return Err(ParseError::SecondSeparator { block, line }),
            (At::Replace(mut block), _) => {
                block.replace.push(text.to_owned());
                At::Replace(block)
            }
        };
    }
    let unfinished = |missing| Err(ParseError::Unfinished { block: blocks.len() + 1, line: last + 1, missing });
    match at {
        At::Search(_) => unfinished(SEPARATOR),
        At::Replace(_) => unfinished(REPLACE),
        At::Outside if blocks.is_empty() => Err(ParseError::NoBlocks),
        At::Outside => Ok(blocks),
    }
}
