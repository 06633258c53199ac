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
    #[error(
        "line {line} of `diff` stands outside any block: `{text}`; a block starts with a line `{SEARCH}`"
    )]
    Outside { line: usize, text: String },
    #[error(
        "block {block} of `diff` is not finished: the line `{missing}` is missing before line {line}"
    )]
    Unfinished {
        block: usize,
        line: usize,
        missing: &'static str,
    },
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

/// A line that is no part of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockMarker {
    Search,
    Separator,
    Replace,
}

/// The marker a line is.
fn exact(line: &str) -> Option<BlockMarker> {
    match line {
        SEARCH => Some(BlockMarker::Search),
        SEPARATOR => Some(BlockMarker::Separator),
        REPLACE => Some(BlockMarker::Replace),
        _ => None,
    }
}

/// The marker a line is, whatever is written after its seven signs.
fn labelled(line: &str) -> Option<BlockMarker> {
    let signs = line
        .split_whitespace()
        .next()
        .filter(|_| !line.starts_with(char::is_whitespace))?;
    match signs {
        "<<<<<<<" => Some(BlockMarker::Search),
        SEPARATOR => Some(BlockMarker::Separator),
        ">>>>>>>" => Some(BlockMarker::Replace),
        _ => None,
    }
}

enum BlockPosition {
    Outside,
    Search(SearchReplaceBlock),
    Replace(SearchReplaceBlock),
}

/// The blocks of a `diff`, in order, and whether the labels of their markers had to be overlooked:
/// `<<<<<<< 1.2.3` where `<<<<<<< SEARCH` is meant. They never are where the `diff` can be read
/// without: its lines may hold other labels.
pub(super) fn parse(diff: &str) -> Result<(Vec<SearchReplaceBlock>, bool), BlockParseError> {
    parse_with(diff, exact)
        .map(|blocks| (blocks, false))
        .or_else(|error| {
            parse_with(diff, labelled)
                .map(|blocks| (blocks, true))
                .map_err(|_| error)
        })
}

/// Every marker stands on a line of its own, so nothing is guessed.
fn parse_with(
    diff: &str,
    marker: fn(&str) -> Option<BlockMarker>,
) -> Result<Vec<SearchReplaceBlock>, BlockParseError> {
    let mut blocks = Vec::new();
    let mut at = BlockPosition::Outside;
    let mut last = 0;
    for (index, text) in diff.lines().enumerate() {
        last = index + 1;
        let line = last;
        let block = blocks.len() + 1;
        let unfinished = |missing| BlockParseError::Unfinished {
            block,
            line,
            missing,
        };
        at = match (at, marker(text.trim_end())) {
            (BlockPosition::Outside, Some(BlockMarker::Search)) => {
                BlockPosition::Search(SearchReplaceBlock::default())
            }
            (BlockPosition::Outside, None) if text.trim().is_empty() => BlockPosition::Outside,
            (BlockPosition::Outside, _) => {
                let text = visible::prefix(&visible::line(text.trim_end()), 80).to_owned();
                return Err(BlockParseError::Outside { line, text });
            }
            (BlockPosition::Search(block), Some(BlockMarker::Separator)) => {
                BlockPosition::Replace(block)
            }
            (BlockPosition::Search(_), Some(_)) => return Err(unfinished(SEPARATOR)),
            (BlockPosition::Search(mut block), None) => {
                block.search.push(text.to_owned());
                BlockPosition::Search(block)
            }
            (BlockPosition::Replace(block), Some(BlockMarker::Replace)) => {
                blocks.push(block);
                BlockPosition::Outside
            }
            (BlockPosition::Replace(_), Some(BlockMarker::Search)) => {
                return Err(unfinished(REPLACE));
            }
            (BlockPosition::Replace(_), Some(BlockMarker::Separator)) => {
                return Err(BlockParseError::SecondSeparator { block, line });
            }
            (BlockPosition::Replace(mut block), None) => {
                block.replace.push(text.to_owned());
                BlockPosition::Replace(block)
            }
        };
    }
    let unfinished = |missing| {
        Err(BlockParseError::Unfinished {
            block: blocks.len() + 1,
            line: last + 1,
            missing,
        })
    };
    match at {
        BlockPosition::Search(_) => unfinished(SEPARATOR),
        BlockPosition::Replace(_) => unfinished(REPLACE),
        BlockPosition::Outside if blocks.is_empty() => Err(BlockParseError::NoBlocks),
        BlockPosition::Outside => Ok(blocks),
    }
}
