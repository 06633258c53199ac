//! Parses the `diff` parameter of `replace_in_file` into blocks.

use crate::failure::Coded;
use crate::visible;

const SEARCH: &str = "<<<<<<< SEARCH";
const SEPARATOR: &str = "=======";
const REPLACE: &str = ">>>>>>> REPLACE";

/// One block of a `diff`: lines to find, and the lines that replace them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SearchReplaceBlock {
    pub(crate) search: Vec<String>,
    pub(crate) replace: Vec<String>,
}

/// An error in a `diff`. Lines of the `diff` are numbered from 1.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BlockParseError {
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

/// The kind of a marker line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockMarker {
    Search,
    Separator,
    Replace,
}

/// Recognizes a marker line with its exact label.
fn match_exact_marker(line: &str) -> Option<BlockMarker> {
    match line {
        SEARCH => Some(BlockMarker::Search),
        SEPARATOR => Some(BlockMarker::Separator),
        REPLACE => Some(BlockMarker::Replace),
        _ => None,
    }
}

/// Recognizes a marker line by its seven marker characters, with any label.
fn match_marker_with_any_label(line: &str) -> Option<BlockMarker> {
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

/// Parses the blocks of a `diff`. The bool is true if labels of markers had to be ignored, as in
/// `<<<<<<< 1.2.3` instead of `<<<<<<< SEARCH`. Exact labels are tried first, because the blocks'
/// own lines may be markers with other labels.
pub(crate) fn parse_diff(diff: &str) -> Result<(Vec<SearchReplaceBlock>, bool), BlockParseError> {
    parse_diff_with(diff, match_exact_marker)
        .map(|blocks| (blocks, false))
        .or_else(|error| {
            parse_diff_with(diff, match_marker_with_any_label)
                .map(|blocks| (blocks, true))
                .map_err(|_| error)
        })
}

/// Parses the blocks of a `diff`. `marker` recognizes marker lines. A marker must fill a whole
/// line, so text inside a line is never mistaken for one.
fn parse_diff_with(
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
                let text =
                    visible::prefix_within(&visible::reveal_line(text.trim_end()), 80).to_owned();
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
