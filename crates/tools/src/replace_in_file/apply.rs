//! Applying blocks to a text: a pure function.
//!
//! All blocks are looked for in the text as it was before the call, so the line numbers in every message are those the model
//! has read, and no block can match what another one wrote. Invariants: every byte outside the changed lines is kept; lines
//! that SEARCH and REPLACE share at their beginning or end count as unchanged; a new line ends as its neighbours do.

use std::ops::Range;

use super::nearest;
use super::parse::Block;
use crate::failure::Coded;

/// What happens when SEARCH fits more than one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Match {
    #[default]
    Unique,
    First,
}

/// The new text and where it changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) text: String,
    /// Changed lines of the new text, from 1, both ends included; a pure deletion is an empty range.
    pub(super) ranges: Vec<(usize, usize)>,
    /// The blocks, from 1, that matched only when white space was ignored.
    pub(super) tolerant: Vec<usize>,
}

/// A block that does not fit. Nothing is changed then.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ApplyError {
    #[error(
        "the SEARCH part of block {block} is empty; give the lines to replace, or write the whole file with `write_to_file`"
    )]
    EmptySearch { block: usize },
    #[error("the SEARCH part of block {block} is not in the file; nothing was changed.{hint}")]
    NotFound { block: usize, hint: String },
    #[error(
        "the SEARCH part of block {block} fits only at line {line}, which another block changes too; nothing was changed. Make one block of both"
    )]
    Overlap { block: usize, line: usize },
    #[error("the SEARCH part of block {block} fits {} places, at lines {}; nothing was changed. Add neighbouring lines until it fits only one, or pass `match` = `first`", .lines.len(), list(.lines))]
    Ambiguous { block: usize, lines: Vec<usize> },
}

impl Coded for ApplyError {
    fn code(&self) -> &'static str {
        match self {
            Self::EmptySearch { .. } => "invalid_diff",
            Self::NotFound { .. } => "no_match",
            Self::Overlap { .. } => "overlapping_blocks",
            Self::Ambiguous { .. } => "ambiguous_match",
        }
    }
}

fn list(lines: &[usize]) -> String {
    const SHOWN: usize = 20;
    let mut text = lines.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if lines.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

/// A line of the file and how it ends: `\n`, `\r\n`, or nothing at the end of the file.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    end: &'a str,
}

/// The lines of a text. Joining text and end of each gives it back.
pub(super) fn split(text: &str) -> Vec<Line<'_>> {
    text.split_inclusive('\n')
        .map(|whole| {
            let body = whole.strip_suffix('\n').map_or(whole, |body| body.strip_suffix('\r').unwrap_or(body));
            Line { text: body, end: whole.get(body.len()..).unwrap_or_default() }
        })
        .collect()
}

/// How two lines are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Exact,
    /// Runs of white space are equal, at both ends they don't count.
    Tolerant,
}

impl Comparison {
    pub(super) fn same(self, one: &str, other: &str) -> bool {
        match self {
            Self::Exact => one == other,
            Self::Tolerant => one.split_whitespace().eq(other.split_whitespace()),
        }
    }
}

/// One block's place: the lines that really change, and what they become.
struct Change {
    lines: Range<usize>,
    new: Vec<String>,
}

/// The text with every block applied.
pub(super) fn apply(text: &str, blocks: &[Block], matching: Match) -> Result<Applied, ApplyError> {
    let lines = split(text);
    let mut found: Vec<Range<usize>> = Vec::with_capacity(blocks.len());
    let mut changes = Vec::with_capacity(blocks.len());
    let mut tolerant = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let number = index + 1;
        if block.search.is_empty() && (!lines.is_empty() || blocks.len() > 1) {
            return Err(ApplyError::EmptySearch { block: number });
        }
        let (place, comparison) = find(&lines, number, block, &found, matching)?;
        if comparison == Comparison::Tolerant {
            tolerant.push(number);
        }
        changes.push(narrow(&lines, block, &place, comparison));
        found.push(place);
    }
    changes.sort_by_key(|change| change.lines.start);
    let (text, ranges) = build(&lines, &changes);
    Ok(Applied { text, ranges, tolerant })
}

/// The one place of a block: exactly and after the block before, exactly anywhere, and then both ignoring white space.
fn find(
    lines: &[Line<'_>],
    number: usize,
    block: &Block,
    taken: &[Range<usize>],
    matching: Match,
) -> Result<(Range<usize>, Comparison), ApplyError> {
    let length = block.search.len();
    let after = taken.last().map_or(0, |place| place.end);
    for comparison in [Comparison::Exact, Comparison::Tolerant] {
        let mut places = places(lines, &block.search, comparison);
        let first = places.first().copied();
        places.retain(|start| taken.iter().all(|taken| start + length <= taken.start || *start >= taken.end));
        if let (Some(first), true) = (first, places.is_empty()) {
            return Err(ApplyError::Overlap { block: number, line: first + 1 });
        }
        let later = places.partition_point(|start| *start < after);
        // Those after the block before win; only if there are none, the ones above count.
        let candidates = if later < places.len() { places.split_off(later) } else { places };
        match (candidates.as_slice(), matching) {
            ([], _) => {}
            ([only], _) | ([only, ..], Match::First) => return Ok((*only..only + length, comparison)),
            (several, Match::Unique) => {
                return Err(ApplyError::Ambiguous {
                    block: number,
                    lines: several.iter().map(|start| start + 1).collect(),
                });
            }
        }
    }
    Err(ApplyError::NotFound { block: number, hint: nearest::hint(lines, block) })
}

fn places(lines: &[Line<'_>], search: &[String], comparison: Comparison) -> Vec<usize> {
    if search.is_empty() {
        return vec![0];
    }
    lines
        .windows(search.len())
        .enumerate()
        .filter(|(_, window)| window.iter().zip(search).all(|(line, wanted)| comparison.same(line.text, wanted)))
        .map(|(start, _)| start)
        .collect()
}

/// The change without the lines both parts share at their ends: those keep their bytes.
fn narrow(lines: &[Line<'_>], block: &Block, place: &Range<usize>, comparison: Comparison) -> Change {
    let (search, replace) = (&block.search, &block.replace);
    let head = search.iter().zip(replace).take_while(|(old, new)| old == new).count();
    let most = search.len().min(replace.len()) - head;
    let tail = search.iter().rev().zip(replace.iter().rev()).take(most).take_while(|(old, new)| old == new).count();
    let new = replace.iter().skip(head).take(replace.len() - head - tail);
    let shift = match comparison {
        Comparison::Exact => Shift::None,
        Comparison::Tolerant => Shift::between(search, lines.get(place.clone()).unwrap_or_default()),
    };
    Change { lines: place.start + head..place.end - tail, new: new.map(|line| shift.apply(line)).collect() }
}

/// By how much the file is indented differently from SEARCH, when that is the same on every line.
enum Shift<'a> {
    None,
    Add(&'a str),
    Remove(&'a str),
}

impl<'a> Shift<'a> {
    fn between(search: &'a [String], found: &[Line<'a>]) -> Self {
        let mut pairs = search.iter().zip(found).filter(|(wanted, _)| !wanted.trim().is_empty());
        let Some((wanted, line)) = pairs.next() else { return Self::None };
        let (given, real) = (indent(wanted), indent(line.text));
        let shift = if let Some(more) = real.strip_suffix(given) {
            Self::Add(more)
        } else if let Some(less) = given.strip_suffix(real) {
            Self::Remove(less)
        } else {
            return Self::None;
        };
        let fits = pairs.all(|(wanted, line)| indent(&shift.apply(wanted)) == indent(line.text));
        if fits { shift } else { Self::None }
    }

    fn apply(&self, line: &str) -> String {
        match self {
            Self::Add(more) if !line.trim().is_empty() => format!("{more}{line}"),
            Self::Remove(less) => line.strip_prefix(less).unwrap_or(line).to_owned(),
            Self::None | Self::Add(_) => line.to_owned(),
        }
    }
}

fn indent(line: &str) -> &str {
    let body = line.trim_start();
    line.get(..line.len() - body.len()).unwrap_or_default()
}

/// Puts kept and new lines together; `changes` are sorted and do not overlap.
fn build(lines: &[Line<'_>], changes: &[Change]) -> (String, Vec<(usize, usize)>) {
    let mut out = Output::default();
    let mut ranges = Vec::with_capacity(changes.len());
    let mut at = 0;
    for change in changes {
        let Range { start, end } = change.lines;
        for line in lines.get(at..start).unwrap_or_default() {
            out.push(line.text, line.end, line_end(lines, start));
        }
        let ending = line_end(lines, start);
        let first = out.count + 1;
        for line in &change.new {
            out.push(line, ending, ending);
        }
        // A file that ended without a line break still does when its last line is new.
        if end == lines.len() && !change.new.is_empty() && lines.last().is_some_and(|line| line.end.is_empty()) {
            out.text.truncate(out.text.len() - ending.len());
        }
        ranges.push((first, out.count));
        at = end;
    }
    for line in lines.get(at..).unwrap_or_default() {
        out.push(line.text, line.end, "\n");
    }
    (out.text, ranges)
}

#[derive(Default)]
struct Output<'a> {
    text: String,
    count: usize,
    /// The line end that has to be written if another line follows one that had none.
    owed: Option<&'a str>,
}

impl<'a> Output<'a> {
    fn push(&mut self, line: &str, end: &str, usual: &'a str) {
        if let Some(owed) = self.owed.take() {
            self.text.push_str(owed);
        }
        self.text.push_str(line);
        self.text.push_str(end);
        self.count += 1;
        if end.is_empty() {
            self.owed = Some(usual);
        }
    }
}

/// How lines end around this place.
fn line_end<'a>(lines: &[Line<'a>], at: usize) -> &'a str {
    let here = lines.get(at).map(|line| line.end);
    let before = at.checked_sub(1).and_then(|before| lines.get(before)).map(|line| line.end);
    let anywhere = lines.first().map(|line| line.end);
    [here, before, anywhere].into_iter().flatten().find(|end| !end.is_empty()).unwrap_or("\n")
}
