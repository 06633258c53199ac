//! Applies blocks of lines to a text, as a pure function.
//!
//! All blocks are searched for in the text as it was before the call. The line numbers in all
//! messages are therefore those that the model has read, and no block can match lines that another
//! block wrote. Invariants: every byte outside the changed lines is kept; a line that a block keeps
//! does not change, not even in its white space or line end; a new line ends like the line that it
//! replaces, or like its neighbors.

use std::collections::BTreeSet;
use std::ops::Range;

use super::lines::{
    TextLine, has_cr_line_ends, line_end_near, restore_carriage_returns, split_lines,
};
use super::nearest::{self, EditTerms};

/// What happens when a block fits more than one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MatchPolicy {
    #[default]
    Unique,
    First,
}

/// One line of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockLine {
    /// A line that stays.
    Keep(String),
    /// A line to remove.
    Remove(String),
    /// A line to add.
    Add(String),
}

/// The places in a file at which a block may match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockAnchor {
    /// The block may match at any place.
    #[default]
    Anywhere,
    /// The block may match only at the end of the file.
    AtEnd,
}

/// Lines to find, and their replacement. A block without lines to find is inserted below its
/// headings, or at the end of the file if it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditBlock {
    /// The kept, removed and added lines, in order.
    pub pieces: Vec<BlockLine>,
    /// Lines that occur above the block, outermost first. The block matches at the first place
    /// below these lines.
    pub headings: Vec<String>,
    pub place: BlockAnchor,
}

impl EditBlock {
    /// Creates the block that replaces the lines of `search` with the lines of `replace`.
    pub(crate) fn from_replacement(search: &[String], replace: &[String]) -> Self {
        let mut pieces = Vec::with_capacity(search.len() + replace.len());
        for change in similar::capture_diff_slices(similar::Algorithm::Myers, search, replace) {
            let old = change.old_range();
            let new = change.new_range();
            let lines = |from: &[String], range| {
                from.get::<Range<usize>>(range).unwrap_or_default().to_vec()
            };
            match change.tag() {
                similar::DiffTag::Equal => {
                    pieces.extend(lines(search, old).into_iter().map(BlockLine::Keep));
                }
                similar::DiffTag::Delete | similar::DiffTag::Insert | similar::DiffTag::Replace => {
                    pieces.extend(lines(search, old).into_iter().map(BlockLine::Remove));
                    pieces.extend(lines(replace, new).into_iter().map(BlockLine::Add));
                }
            }
        }
        Self {
            pieces,
            ..Self::default()
        }
    }

    /// Adapts the block to a file that contains carriage returns: replaces the symbol `␍` with a
    /// carriage return, and splits lines at carriage returns if the file's lines end with carriage
    /// returns.
    fn adapt_to_file(&self, file: &str) -> Self {
        if !file.contains('\r') {
            return self.clone();
        }
        let pieces = self.pieces.iter().flat_map(|piece| {
            let made: fn(String) -> BlockLine = match piece {
                BlockLine::Keep(_) => BlockLine::Keep,
                BlockLine::Remove(_) => BlockLine::Remove,
                BlockLine::Add(_) => BlockLine::Add,
            };
            let text = restore_carriage_returns(line_text(piece), file);
            let lines = if has_cr_line_ends(file) {
                text.split('\r').map(str::to_owned).collect()
            } else {
                vec![text]
            };
            lines.into_iter().map(made)
        });
        Self {
            pieces: pieces.collect(),
            ..self.clone()
        }
    }

    /// Returns the lines that the block searches for.
    fn old_lines(&self) -> Vec<&str> {
        self.pieces
            .iter()
            .filter(|piece| matches!(piece, BlockLine::Keep(_) | BlockLine::Remove(_)))
            .map(line_text)
            .collect()
    }

    /// Returns the lines that the block leaves in the file: the kept and the added lines, in order.
    fn new_lines(&self) -> Vec<&str> {
        self.pieces
            .iter()
            .filter(|piece| matches!(piece, BlockLine::Keep(_) | BlockLine::Add(_)))
            .map(line_text)
            .collect()
    }
}

fn line_text(piece: &BlockLine) -> &str {
    match piece {
        BlockLine::Keep(text) | BlockLine::Remove(text) | BlockLine::Add(text) => text,
    }
}

/// The result of applying blocks to a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AppliedBlocks {
    pub(crate) text: String,
    /// The numbers of the blocks, counting from 1, that matched only with white space ignored.
    pub(crate) tolerant: Vec<usize>,
}

/// The error for a block that does not match the file. No file is changed. Blocks and lines are
/// numbered from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BlockMisfit {
    pub(crate) block: usize,
    pub(crate) why: MisfitReason,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MisfitReason {
    /// The old lines are not in the file. The hint contains the most similar places.
    NotFound { hint: String },
    /// A heading is not in the file.
    NoHeading { heading: String },
    /// The block matches only lines that another block matches.
    Overlap { line: usize },
    /// The block matches several places.
    Ambiguous { lines: Vec<usize> },
}

/// The way in which two lines are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Exact,
    /// White space at both ends is ignored, and all runs of white space count as equal.
    Tolerant,
}

impl Comparison {
    pub(crate) fn lines_equal(self, one: &str, other: &str) -> bool {
        match self {
            Self::Exact => one == other,
            Self::Tolerant => one.split_whitespace().eq(other.split_whitespace()),
        }
    }
}

/// A range of lines and the lines that replace it.
struct LineChange {
    lines: Range<usize>,
    new: Vec<String>,
}

/// Applies all blocks to the text, or none.
pub(crate) fn apply_blocks(
    text: &str,
    blocks: &[EditBlock],
    matching: MatchPolicy,
    terms: EditTerms,
) -> Result<AppliedBlocks, BlockMisfit> {
    let lines = split_lines(text);
    let blocks: Vec<_> = blocks
        .iter()
        .map(|block| block.adapt_to_file(text))
        .collect();
    let mut found: Vec<Range<usize>> = Vec::with_capacity(blocks.len());
    let mut changes = Vec::with_capacity(blocks.len());
    let mut tolerant = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let number = index + 1;
        let search = BlockSearch {
            lines: &lines,
            block,
            taken: &found,
            matching,
        };
        let (place, comparison) = search
            .find_place(terms)
            .map_err(|why| BlockMisfit { block: number, why })?;
        if comparison == Comparison::Tolerant {
            tolerant.push(number);
        }
        changes.extend(plan_block_changes(&lines, block, &place, comparison));
        found.push(place);
    }
    // Lines inserted before a line precede the replacement of that line.
    changes.sort_by_key(|change| (change.lines.start, change.lines.end));
    Ok(AppliedBlocks {
        text: build_text(&lines, &changes),
        tolerant,
    })
}

/// The search for the place of one block.
struct BlockSearch<'a> {
    lines: &'a [TextLine<'a>],
    block: &'a EditBlock,
    /// The places of the earlier blocks of the call.
    taken: &'a [Range<usize>],
    matching: MatchPolicy,
}

impl BlockSearch<'_> {
    /// Returns the lines that the block matches, and the kind of comparison that matched. Exact
    /// matches are tried first, then matches with white space ignored. A place below the previous
    /// block is preferred to places above it.
    fn find_place(&self, terms: EditTerms) -> Result<(Range<usize>, Comparison), MisfitReason> {
        let old = self.block.old_lines();
        if old.is_empty() {
            let at = self.find_insertion()?;
            return Ok((at..at, Comparison::Exact));
        }
        let headings = self.find_headings()?;
        for comparison in [Comparison::Exact, Comparison::Tolerant] {
            let mut places = find_matches(self.lines, &old, comparison);
            if self.block.place == BlockAnchor::AtEnd {
                places.retain(|start| start + old.len() == self.lines.len());
            }
            let first = places.first().copied();
            places.retain(|start| self.is_free(*start..start + old.len()));
            if let (Some(first), true) = (first, places.is_empty()) {
                return Err(MisfitReason::Overlap { line: first + 1 });
            }
            if let Some(start) = self.choose_place(places, headings.as_deref())? {
                return Ok((start..start + old.len(), comparison));
            }
        }
        Err(MisfitReason::NotFound {
            hint: nearest::describe_nearest_places(
                self.lines,
                &old,
                &self.block.new_lines(),
                terms,
            ),
        })
    }

    fn end_of_previous(&self) -> usize {
        self.taken.last().map_or(0, |place| place.end)
    }

    fn is_free(&self, place: Range<usize>) -> bool {
        self.taken
            .iter()
            .all(|taken| place.end <= taken.start || place.start >= taken.end)
    }

    fn choose_place(
        &self,
        mut places: Vec<usize>,
        headings: Option<&[usize]>,
    ) -> Result<Option<usize>, MisfitReason> {
        let candidates = if let Some(headings) = headings {
            let next = |heading: &usize| {
                places
                    .get(places.partition_point(|start| start < heading))
                    .copied()
            };
            headings
                .iter()
                .filter_map(next)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect()
        } else {
            // Places below the previous block win; places above count only if there are none.
            let later = places.partition_point(|start| *start < self.end_of_previous());
            if later < places.len() {
                places.split_off(later)
            } else {
                places
            }
        };
        self.select_candidate(&candidates)
    }

    fn select_candidate(&self, candidates: &[usize]) -> Result<Option<usize>, MisfitReason> {
        match (candidates, self.matching) {
            ([], _) => Ok(None),
            ([only], _) | ([only, ..], MatchPolicy::First) => Ok(Some(*only)),
            (several, MatchPolicy::Unique) => Err(MisfitReason::Ambiguous {
                lines: several.iter().map(|start| start + 1).collect(),
            }),
        }
    }

    /// Returns the index of the line before which a block without old lines is inserted.
    fn find_insertion(&self) -> Result<usize, MisfitReason> {
        let at = match self.find_headings()? {
            Some(headings) if self.block.place == BlockAnchor::Anywhere => self
                .select_candidate(&headings)?
                .map_or(self.lines.len(), |heading| heading + 1),
            Some(_) | None => self.lines.len(),
        };
        if self.is_free(at..at) {
            Ok(at)
        } else {
            Err(MisfitReason::Overlap { line: at })
        }
    }

    /// Returns the line indexes of the innermost heading, preferably below the previous block;
    /// `None` if the block has no headings.
    fn find_headings(&self) -> Result<Option<Vec<usize>>, MisfitReason> {
        if self.block.headings.is_empty() {
            return Ok(None);
        }
        let below = self
            .find_headings_from(self.end_of_previous())
            .or_else(|_| self.find_headings_from(0));
        below
            .map(Some)
            .map_err(|heading| MisfitReason::NoHeading { heading })
    }

    fn find_headings_from(&self, from: usize) -> Result<Vec<usize>, String> {
        let mut found: Option<BTreeSet<usize>> = None;
        for heading in &self.block.headings {
            let all = match_heading(self.lines, heading, from);
            let next = match &found {
                None => all.into_iter().collect(),
                Some(above) => {
                    let next =
                        |above: &usize| all.get(all.partition_point(|line| line <= above)).copied();
                    above.iter().filter_map(next).collect::<BTreeSet<_>>()
                }
            };
            if next.is_empty() {
                return Err(heading.clone());
            }
            found = Some(next);
        }
        Ok(found.unwrap_or_default().into_iter().collect())
    }
}

/// Returns the indexes of the lines that match a heading: equal lines; if there are none, lines
/// that are equal up to white space; and if there are none either, lines that begin with the
/// heading.
fn match_heading(lines: &[TextLine<'_>], heading: &str, from: usize) -> Vec<usize> {
    let is = |same: &dyn Fn(&str) -> bool| -> Vec<usize> {
        lines
            .iter()
            .enumerate()
            .skip(from)
            .filter(|(_, line)| same(line.text))
            .map(|(at, _)| at)
            .collect()
    };
    let exact = is(&|line| line == heading);
    if !exact.is_empty() {
        return exact;
    }
    let tolerant = is(&|line| Comparison::Tolerant.lines_equal(line, heading));
    if tolerant.is_empty() {
        is(&|line| line.trim_start().starts_with(heading.trim()))
    } else {
        tolerant
    }
}

fn find_matches(lines: &[TextLine<'_>], old: &[&str], comparison: Comparison) -> Vec<usize> {
    lines
        .windows(old.len())
        .enumerate()
        .filter(|(_, window)| {
            window
                .iter()
                .zip(old)
                .all(|(line, wanted)| comparison.lines_equal(line.text, wanted))
        })
        .map(|(start, _)| start)
        .collect()
}

/// Returns the changes that a block makes at `place`. The changes do not include kept lines, so
/// kept lines stay as they are in the file.
fn plan_block_changes(
    lines: &[TextLine<'_>],
    block: &EditBlock,
    place: &Range<usize>,
    comparison: Comparison,
) -> Vec<LineChange> {
    let old = block.old_lines();
    let indents = match comparison {
        Comparison::Exact => Indents(Vec::new()),
        Comparison::Tolerant => {
            Indents::from_lines(&old, lines.get(place.clone()).unwrap_or_default())
        }
    };
    let mut changes: Vec<LineChange> = Vec::new();
    let mut at = place.start;
    let mut open = false;
    for piece in &block.pieces {
        if let BlockLine::Keep(_) = piece {
            at += 1;
            open = false;
            continue;
        }
        if !open {
            changes.push(LineChange {
                lines: at..at,
                new: Vec::new(),
            });
            open = true;
        }
        let Some(change) = changes.last_mut() else {
            continue;
        };
        match piece {
            BlockLine::Keep(_) => {}
            BlockLine::Remove(_) => {
                at += 1;
                change.lines.end = at;
            }
            BlockLine::Add(line) => change.new.push(indents.reindent(line)),
        }
    }
    changes
}

/// Maps each indentation in the block to the indentation of the matching lines in the file, or to
/// `None` if the matching lines have different indentations.
struct Indents<'a>(Vec<(&'a str, Option<&'a str>)>);

impl<'a> Indents<'a> {
    fn from_lines(old: &[&'a str], found: &[TextLine<'a>]) -> Self {
        let mut known: Vec<(&str, Option<&str>)> = Vec::new();
        for (wanted, line) in old
            .iter()
            .zip(found)
            .filter(|(wanted, _)| !wanted.trim().is_empty())
        {
            let given = leading_whitespace(wanted);
            let real = leading_whitespace(line.text);
            match known.iter_mut().find(|(known, _)| *known == given) {
                Some((_, known)) if *known == Some(real) => {}
                Some((_, known)) => *known = None,
                None => known.push((given, Some(real))),
            }
        }
        Self(known)
    }

    /// Returns a new line with its indentation replaced with the indentation that the file uses.
    fn reindent(&self, line: &str) -> String {
        let own = leading_whitespace(line);
        let like = self
            .0
            .iter()
            .filter(|(given, _)| own.starts_with(given))
            .max_by_key(|(given, _)| given.len());
        match like {
            Some((given, Some(real))) if !line.trim().is_empty() => {
                format!("{real}{}", line.strip_prefix(given).unwrap_or(line))
            }
            Some(_) | None => line.to_owned(),
        }
    }
}

fn leading_whitespace(line: &str) -> &str {
    let body = line.trim_start();
    line.get(..line.len() - body.len()).unwrap_or_default()
}

/// Combines unchanged and new lines into the new text. `changes` must be sorted and must not
/// overlap.
fn build_text(lines: &[TextLine<'_>], changes: &[LineChange]) -> String {
    let mut out = EditedText::default();
    let mut at = 0;
    let open_ended = lines.last().is_some_and(|line| line.end.is_empty());
    for change in changes {
        let Range { start, end } = change.lines;
        let usual = line_end_near(lines, start);
        for line in lines.get(at..start).unwrap_or_default() {
            out.push_line(line.text, line.end, usual);
        }
        for (index, line) in change.new.iter().enumerate() {
            let replaced = lines
                .get(start + index)
                .filter(|_| start + index < end)
                .map(|line| line.end);
            let ending = replaced.filter(|end| !end.is_empty()).unwrap_or(usual);
            // A file without a final line break still has none if its last line is new.
            let is_last = end == lines.len() && index + 1 == change.new.len();
            out.push_line(line, if is_last && open_ended { "" } else { ending }, usual);
        }
        at = end;
    }
    for line in lines.get(at..).unwrap_or_default() {
        out.push_line(line.text, line.end, "\n");
    }
    out.text
}

#[derive(Default)]
struct EditedText<'a> {
    text: String,
    /// The line end to write before the next line, because the previous line had none.
    owed: Option<&'a str>,
}

impl<'a> EditedText<'a> {
    fn push_line(&mut self, line: &str, end: &str, usual: &'a str) {
        if let Some(owed) = self.owed.take() {
            self.text.push_str(owed);
        }
        self.text.push_str(line);
        self.text.push_str(end);
        if end.is_empty() {
            self.owed = Some(usual);
        }
    }
}
