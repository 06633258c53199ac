//! Applying blocks of lines to a text: a pure function.
//!
//! All blocks are looked for in the text as it was before the call, so the line numbers in every
//! message are those the model has read, and no block can match what another one wrote. Invariants:
//! every byte outside the changed lines is kept; a line that a block keeps is not changed, not even
//! in its white space or its end; a new line ends as the one it replaces or as its neighbours do.

use std::collections::BTreeSet;
use std::ops::Range;

use super::lines::{TextLine, end_near, ends_in_returns, returns_for, split};
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
    /// It stays.
    Keep(String),
    /// It goes.
    Remove(String),
    /// It is new.
    Add(String),
}

/// Where a block may stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockAnchor {
    /// In any place.
    #[default]
    Anywhere,
    /// At the end of the file.
    AtEnd,
}

/// Lines to find and what becomes of them. Without lines to find it stands below its headings, or
/// at the end of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditBlock {
    /// Its lines.
    pub pieces: Vec<BlockLine>,
    /// Lines that stand somewhere above it, outermost first: the block is the next fitting place
    /// below them.
    pub headings: Vec<String>,
    /// Where it may stand.
    pub place: BlockAnchor,
}

impl EditBlock {
    /// The block that makes the second lines of the first ones.
    pub(crate) fn replacing(search: &[String], replace: &[String]) -> Self {
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

    /// The same block for a file that may hold carriage returns: it may have copied their pictures,
    /// or several of such lines as one.
    fn for_file(&self, file: &str) -> Self {
        if !file.contains('\r') {
            return self.clone();
        }
        let lines = |text: &str| -> Vec<String> {
            let text = returns_for(text, file);
            if ends_in_returns(file) {
                text.split('\r').map(str::to_owned).collect()
            } else {
                vec![text]
            }
        };
        let pieces = self.pieces.iter().flat_map(|piece| {
            let made: fn(String) -> BlockLine = match piece {
                BlockLine::Keep(_) => BlockLine::Keep,
                BlockLine::Remove(_) => BlockLine::Remove,
                BlockLine::Add(_) => BlockLine::Add,
            };
            lines(text_of(piece)).into_iter().map(made)
        });
        Self {
            pieces: pieces.collect(),
            ..self.clone()
        }
    }

    /// The lines it looks for.
    fn old(&self) -> Vec<&str> {
        let of = |piece: &'_ BlockLine| matches!(piece, BlockLine::Keep(_) | BlockLine::Remove(_));
        self.pieces
            .iter()
            .filter(|piece| of(piece))
            .map(text_of)
            .collect()
    }

    /// The lines it leaves.
    fn new_lines(&self) -> Vec<&str> {
        let of = |piece: &'_ BlockLine| matches!(piece, BlockLine::Keep(_) | BlockLine::Add(_));
        self.pieces
            .iter()
            .filter(|piece| of(piece))
            .map(text_of)
            .collect()
    }
}

fn text_of(piece: &BlockLine) -> &str {
    match piece {
        BlockLine::Keep(text) | BlockLine::Remove(text) | BlockLine::Add(text) => text,
    }
}

/// The new text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) text: String,
    /// The blocks, from 1, that matched only when white space was ignored.
    pub(crate) tolerant: Vec<usize>,
}

/// A block that does not fit. Nothing is changed then. Blocks and lines count from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BlockMisfit {
    pub(crate) block: usize,
    pub(crate) why: Why,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its lines are nowhere; the hint says where the file comes closest.
    NotFound { hint: String },
    /// One of its headings is nowhere.
    NoHeading { heading: String },
    /// It fits only where another block does.
    Overlap { line: usize },
    /// It fits several places.
    Ambiguous { lines: Vec<usize> },
}

/// How two lines are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Exact,
    /// Runs of white space are equal, at both ends they don't count.
    Tolerant,
}

impl Comparison {
    pub(crate) fn same(self, one: &str, other: &str) -> bool {
        match self {
            Self::Exact => one == other,
            Self::Tolerant => one.split_whitespace().eq(other.split_whitespace()),
        }
    }
}

/// Lines that really change, and what they become.
struct LineChange {
    lines: Range<usize>,
    new: Vec<String>,
}

/// The text with every block applied.
pub(crate) fn apply(
    text: &str,
    blocks: &[EditBlock],
    matching: MatchPolicy,
    terms: EditTerms,
) -> Result<Applied, BlockMisfit> {
    let lines = split(text);
    let blocks: Vec<_> = blocks.iter().map(|block| block.for_file(text)).collect();
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
            .find(terms)
            .map_err(|why| BlockMisfit { block: number, why })?;
        if comparison == Comparison::Tolerant {
            tolerant.push(number);
        }
        changes.extend(changes_of(&lines, block, &place, comparison));
        found.push(place);
    }
    // What is inserted before a line comes before what is made of that line.
    changes.sort_by_key(|change| (change.lines.start, change.lines.end));
    Ok(Applied {
        text: build(&lines, &changes),
        tolerant,
    })
}

/// Looking for one block.
struct BlockSearch<'a> {
    lines: &'a [TextLine<'a>],
    block: &'a EditBlock,
    /// Where the blocks before it stand.
    taken: &'a [Range<usize>],
    matching: MatchPolicy,
}

impl BlockSearch<'_> {
    /// The one place of a block: exactly and after the block before, exactly anywhere, and then
    /// both ignoring white space.
    fn find(&self, terms: EditTerms) -> Result<(Range<usize>, Comparison), Why> {
        let old = self.block.old();
        if old.is_empty() {
            let at = self.insertion()?;
            return Ok((at..at, Comparison::Exact));
        }
        let headings = self.headings()?;
        for comparison in [Comparison::Exact, Comparison::Tolerant] {
            let mut places = places(self.lines, &old, comparison);
            if self.block.place == BlockAnchor::AtEnd {
                places.retain(|start| start + old.len() == self.lines.len());
            }
            let first = places.first().copied();
            places.retain(|start| self.is_free(*start..start + old.len()));
            if let (Some(first), true) = (first, places.is_empty()) {
                return Err(Why::Overlap { line: first + 1 });
            }
            if let Some(start) = self.choose(places, headings.as_deref())? {
                return Ok((start..start + old.len(), comparison));
            }
        }
        Err(Why::NotFound {
            hint: nearest::hint(self.lines, &old, &self.block.new_lines(), terms),
        })
    }

    fn after(&self) -> usize {
        self.taken.last().map_or(0, |place| place.end)
    }

    fn is_free(&self, place: Range<usize>) -> bool {
        self.taken
            .iter()
            .all(|taken| place.end <= taken.start || place.start >= taken.end)
    }

    fn choose(
        &self,
        mut places: Vec<usize>,
        headings: Option<&[usize]>,
    ) -> Result<Option<usize>, Why> {
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
            // Those after the block before win; only if there are none, the ones above count.
            let later = places.partition_point(|start| *start < self.after());
            if later < places.len() {
                places.split_off(later)
            } else {
                places
            }
        };
        self.only(&candidates)
    }

    fn only(&self, candidates: &[usize]) -> Result<Option<usize>, Why> {
        match (candidates, self.matching) {
            ([], _) => Ok(None),
            ([only], _) | ([only, ..], MatchPolicy::First) => Ok(Some(*only)),
            (several, MatchPolicy::Unique) => Err(Why::Ambiguous {
                lines: several.iter().map(|start| start + 1).collect(),
            }),
        }
    }

    /// Where a block without old lines goes.
    fn insertion(&self) -> Result<usize, Why> {
        let at = match self.headings()? {
            Some(headings) if self.block.place == BlockAnchor::Anywhere => self
                .only(&headings)?
                .map_or(self.lines.len(), |heading| heading + 1),
            Some(_) | None => self.lines.len(),
        };
        if self.is_free(at..at) {
            Ok(at)
        } else {
            Err(Why::Overlap { line: at })
        }
    }

    /// The places of the innermost heading, after the block before if there are any; `None` without
    /// headings.
    fn headings(&self) -> Result<Option<Vec<usize>>, Why> {
        if self.block.headings.is_empty() {
            return Ok(None);
        }
        let below = self
            .headings_from(self.after())
            .or_else(|_| self.headings_from(0));
        below
            .map(Some)
            .map_err(|heading| Why::NoHeading { heading })
    }

    fn headings_from(&self, from: usize) -> Result<Vec<usize>, String> {
        let mut found: Option<BTreeSet<usize>> = None;
        for heading in &self.block.headings {
            let all = headings_like(self.lines, heading, from);
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

/// The lines that a heading may mean: those that are it, then those that are it but for white
/// space, then those that begin so.
fn headings_like(lines: &[TextLine<'_>], heading: &str, from: usize) -> Vec<usize> {
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
    let tolerant = is(&|line| Comparison::Tolerant.same(line, heading));
    if tolerant.is_empty() {
        is(&|line| line.trim_start().starts_with(heading.trim()))
    } else {
        tolerant
    }
}

fn places(lines: &[TextLine<'_>], old: &[&str], comparison: Comparison) -> Vec<usize> {
    lines
        .windows(old.len())
        .enumerate()
        .filter(|(_, window)| {
            window
                .iter()
                .zip(old)
                .all(|(line, wanted)| comparison.same(line.text, wanted))
        })
        .map(|(start, _)| start)
        .collect()
}

/// The lines a block really changes: those it keeps stay as they are in the file.
fn changes_of(
    lines: &[TextLine<'_>],
    block: &EditBlock,
    place: &Range<usize>,
    comparison: Comparison,
) -> Vec<LineChange> {
    let old = block.old();
    let indents = match comparison {
        Comparison::Exact => Indents(Vec::new()),
        Comparison::Tolerant => {
            Indents::between(&old, lines.get(place.clone()).unwrap_or_default())
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
            BlockLine::Add(line) => change.new.push(indents.apply(line)),
        }
    }
    changes
}

/// How the file is indented where the block is indented so, for the lines that both have; `None`
/// where they disagree.
struct Indents<'a>(Vec<(&'a str, Option<&'a str>)>);

impl<'a> Indents<'a> {
    fn between(old: &[&'a str], found: &[TextLine<'a>]) -> Self {
        let mut known: Vec<(&str, Option<&str>)> = Vec::new();
        for (wanted, line) in old
            .iter()
            .zip(found)
            .filter(|(wanted, _)| !wanted.trim().is_empty())
        {
            let given = indent(wanted);
            let real = indent(line.text);
            match known.iter_mut().find(|(known, _)| *known == given) {
                Some((_, known)) if *known == Some(real) => {}
                Some((_, known)) => *known = None,
                None => known.push((given, Some(real))),
            }
        }
        Self(known)
    }

    /// A new line as it would stand in the file.
    fn apply(&self, line: &str) -> String {
        let own = indent(line);
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

fn indent(line: &str) -> &str {
    let body = line.trim_start();
    line.get(..line.len() - body.len()).unwrap_or_default()
}

/// Puts kept and new lines together; `changes` are sorted and do not overlap.
fn build(lines: &[TextLine<'_>], changes: &[LineChange]) -> String {
    let mut out = EditedText::default();
    let mut at = 0;
    let open_ended = lines.last().is_some_and(|line| line.end.is_empty());
    for change in changes {
        let Range { start, end } = change.lines;
        let usual = end_near(lines, start);
        for line in lines.get(at..start).unwrap_or_default() {
            out.push(line.text, line.end, usual);
        }
        for (index, line) in change.new.iter().enumerate() {
            let replaced = lines
                .get(start + index)
                .filter(|_| start + index < end)
                .map(|line| line.end);
            let ending = replaced.filter(|end| !end.is_empty()).unwrap_or(usual);
            // A file that ended without a line break still does when its last line is new.
            let is_last = end == lines.len() && index + 1 == change.new.len();
            out.push(line, if is_last && open_ended { "" } else { ending }, usual);
        }
        at = end;
    }
    for line in lines.get(at..).unwrap_or_default() {
        out.push(line.text, line.end, "\n");
    }
    out.text
}

#[derive(Default)]
struct EditedText<'a> {
    text: String,
    /// The line end that has to be written if another line follows one that had none.
    owed: Option<&'a str>,
}

impl<'a> EditedText<'a> {
    fn push(&mut self, line: &str, end: &str, usual: &'a str) {
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
