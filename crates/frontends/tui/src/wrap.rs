//! Breaks lines into rows.
//!
//! Invariant: no row is wider than asked, and no character is lost but the blanks at a break.

use haft_text::width;
use unicode_segmentation::UnicodeSegmentation;

use crate::line::{StyledLine, StyledSpan, TextStyle};

/// Narrower than this nothing is laid out: a wide character and a mark of a cut must fit.
pub(crate) const NARROWEST: usize = 8;
/// What is inset has less room than that; a character must still fit.
const LEAST: usize = 4;

struct StyledCell<'a> {
    text: &'a str,
    style: TextStyle,
}

/// The rows of a line, broken at blanks and between wide characters where that is possible.
pub(crate) fn wrap(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    let columns = columns.max(LEAST);
    if line.width() <= columns {
        return vec![line.clone()];
    }
    let mut rows = Vec::new();
    let mut row: Vec<StyledCell<'_>> = Vec::new();
    let mut used = 0;
    // Where the row may be broken, and how wide it is up to there.
    let mut chance: Option<(usize, usize)> = None;
    for span in line.spans() {
        for text in pieces(span.text(), columns) {
            let wide = width(text);
            if used + wide > columns {
                if text == " " {
                    rows.push(join(&row));
                    (row, used, chance) = (Vec::new(), 0, None);
                    continue;
                }
                let (at, before) = chance.take().unwrap_or((row.len(), used));
                let rest = row.split_off(at);
                rows.push(join(&row));
                (row, used) = (rest, used - before);
            }
            row.push(StyledCell { text, style: span.style() });
            used += wide;
            if text == " " || wide > 1 {
                chance = Some((row.len(), used));
            }
        }
    }
    if !row.is_empty() {
        rows.push(join(&row));
    }
    fitting(rows, columns)
}

/// The rows of a line that keeps its blanks, as code does: broken where the row is full.
pub(crate) fn chop(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    let columns = columns.max(LEAST);
    if line.width() <= columns {
        return vec![line.clone()];
    }
    let mut rows = Vec::new();
    let mut row = StyledLine::empty();
    let mut used = 0;
    for span in line.spans() {
        let mut text = String::new();
        for piece in pieces(span.text(), columns) {
            let wide = width(piece);
            if used + wide > columns {
                row.push(StyledSpan::part(std::mem::take(&mut text), span.style()));
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            text.push_str(piece);
            used += wide;
        }
        row.push(StyledSpan::part(text, span.style()));
    }
    rows.push(row);
    fitting(rows, columns)
}

/// Breaks rows once more that are wider than the characters they are made of, as some are beside each other.
fn fitting(rows: Vec<StyledLine>, columns: usize) -> Vec<StyledLine> {
    if rows.iter().all(|row| row.width() <= columns) {
        return rows;
    }
    rows.iter().flat_map(|row| if row.width() <= columns { vec![row.clone()] } else { broken(row, columns) }).collect()
}

/// Rows of which each was measured as a whole.
fn broken(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    let mut rows = vec![StyledLine::empty()];
    for span in line.spans() {
        for piece in pieces(span.text(), columns) {
            let last = rows.len() - 1;
            let mut longer = rows[last].clone();
            longer.push(StyledSpan::part(piece.to_owned(), span.style()));
            if longer.width() > columns {
                rows.push(StyledLine::empty());
                longer = StyledLine::empty();
                longer.push(StyledSpan::part(piece.to_owned(), span.style()));
            }
            let last = rows.len() - 1;
            rows[last] = longer;
        }
    }
    rows
}

/// Rows with something in front: one thing before the first, another before the others. It takes its columns from the rows.
pub(crate) fn hang(line: &StyledLine, first: &StyledLine, rest: &StyledLine, columns: usize) -> Vec<StyledLine> {
    let room = columns.saturating_sub(first.width().max(rest.width()));
    let rows = wrap(line, room);
    let fronted = |(at, row): (usize, StyledLine)| {
        let front = if at == 0 { first } else { rest };
        front.spans().iter().chain(row.spans()).cloned().collect()
    };
    rows.into_iter().enumerate().map(fronted).collect()
}

/// Characters as people see them; what would not fit a row on its own comes in its parts.
fn pieces(text: &str, columns: usize) -> impl Iterator<Item = &str> {
    text.graphemes(true).flat_map(move |one| {
        let whole = width(one) <= columns;
        let parts = one.char_indices().map(move |(at, c)| &one[at..at + c.len_utf8()]);
        whole.then_some(one).into_iter().chain(parts.filter(move |_| !whole))
    })
}

fn join(cells: &[StyledCell<'_>]) -> StyledLine {
    let blank = cells.iter().rev().take_while(|cell| cell.text == " ").count();
    let mut line = StyledLine::empty();
    let mut cells = cells[..cells.len() - blank].iter().peekable();
    while let Some(first) = cells.next() {
        let mut text = first.text.to_owned();
        while let Some(next) = cells.next_if(|next| next.style == first.style) {
            text.push_str(next.text);
        }
        line.push(StyledSpan::part(text, first.style));
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str, columns: usize) -> Vec<String> {
        wrap(&StyledLine::of(text, TextStyle::Plain), columns).iter().map(StyledLine::plain).collect()
    }

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(rows("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(rows("abcdefghijkl mn", 8), ["abcdefgh", "ijkl mn"]);
        assert_eq!(rows("日本語日本語", 9), ["日本語日", "本語"]);
    }

    #[test]
    fn letters_that_are_wider_beside_each_other_are_broken_apart() {
        let line = StyledLine::of(" !0𐹠0!a¡!a𑍇", TextStyle::Plain);
        for columns in 8..12 {
            let all = [wrap(&line, columns), chop(&line, columns)];
            assert!(all.iter().flatten().all(|row| row.width() <= columns), "{all:?}");
        }
    }

    #[test]
    fn tones_survive_a_break() {
        let line = StyledLine::of("plain words ", TextStyle::Plain).and("and strong ones", TextStyle::Strong);
        let rows = wrap(&line, 14);
        assert_eq!(rows[1].spans(), [StyledSpan::new("and strong", TextStyle::Strong)]);
    }

    #[test]
    fn what_hangs_is_indented() {
        let line = StyledLine::of("one two three", TextStyle::Plain);
        let rows = hang(&line, &StyledLine::of("• ", TextStyle::Dim), &StyledLine::of("  ", TextStyle::Plain), 10);
        assert_eq!(rows.iter().map(StyledLine::plain).collect::<Vec<_>>(), ["• one two", "  three"]);
    }

    proptest! {
        #[test]
        fn rows_fit_and_nothing_is_lost(text in any::<String>(), columns in LEAST..40) {
            let line = StyledLine::of(&text, TextStyle::Plain);
            let wrapped = wrap(&line, columns);
            let chopped = chop(&line, columns);
            prop_assert!(wrapped.iter().chain(&chopped).all(|row| row.width() <= columns));
            let without = |text: String| text.replace(' ', "");
            prop_assert_eq!(without(wrapped.iter().map(StyledLine::plain).collect()), without(line.plain()));
            prop_assert_eq!(chopped.iter().map(StyledLine::plain).collect::<String>(), line.plain());
        }
    }
}
