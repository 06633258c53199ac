//! Breaks lines into rows.
//!
//! Invariants: no row is wider than `columns`, and no character is lost except spaces at a break.
//! A web address is not broken if it fits into a row. One that doesn't fit fills whole rows, which
//! are marked as continued, so that the terminal can join them again.

use std::ops::Range;

use haft_text::display_width;
use unicode_segmentation::UnicodeSegmentation;

use crate::line::{StyledLine, StyledSpan, TextStyle};
use crate::web_address::find_addresses;

/// The minimum width of the layout, in columns. A wide character and the mark of cut text must fit.
pub(crate) const MIN_COLUMNS: usize = 8;
/// The minimum width of indented text, in columns. A wide character must fit.
const MIN_INDENTED_COLUMNS: usize = 4;

/// The minimum width of a row that is broken after punctuation, in thirds of its maximum width.
const THIRDS_AT_SIGN: usize = 1;
/// The minimum width of a row of code that is broken at a space, in thirds of its maximum width.
const THIRDS_AT_BLANK: usize = 2;

#[derive(Clone, Copy)]
struct StyledCell<'a> {
    text: &'a str,
    /// The span that contains the text.
    span: &'a StyledSpan,
    wide: usize,
}

/// Selects whether spaces at a break are dropped or kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BreakBlanks {
    Dropped,
    Kept,
}

/// Wraps a line, at spaces and between wide characters if possible. Spaces at a break are dropped.
pub(crate) fn wrap_line(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    let none = StyledLine::empty();
    wrap_hanging(line, &none, &none, columns)
}

/// Wraps a line of code. Spaces at a break are kept.
pub(crate) fn wrap_code(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    break_rows(&line.link_addresses(), columns, BreakBlanks::Kept)
}

fn break_rows(line: &StyledLine, columns: usize, blanks: BreakBlanks) -> Vec<StyledLine> {
    let columns = columns.max(MIN_INDENTED_COLUMNS);
    if line.width() <= columns {
        return vec![line.clone()];
    }
    let cell = |span| {
        move |text| StyledCell {
            text,
            span,
            wide: display_width(text),
        }
    };
    let cells: Vec<_> = line
        .spans()
        .iter()
        .flat_map(|span| split_graphemes(span.text(), columns).map(cell(span)))
        .collect();
    let mut rows = Vec::new();
    let mut rest = &cells[..];
    while !rest.is_empty() {
        let mut used = 0;
        let fits = |cell: &&StyledCell<'_>| {
            used += cell.wide;
            used <= columns
        };
        let full = rest.iter().take_while(fits).count().max(1);
        let at = if full == rest.len() {
            full
        } else {
            break_index(rest, full, columns, blanks)
        };
        rows.push(join_cells(&rest[..at], blanks));
        rest = &rest[at..];
        if blanks == BreakBlanks::Dropped {
            let blank = rest.iter().take_while(|cell| cell.text == " ").count();
            rest = &rest[blank..];
        }
    }
    break_wide_rows(rows, columns)
}

/// Returns the index of the cell before which a row is broken. At most `full` cells fit into the
/// row. The row is broken at the last space, else after punctuation, else at the width limit.
fn break_index(
    cells: &[StyledCell<'_>],
    full: usize,
    columns: usize,
    blanks: BreakBlanks,
) -> usize {
    let begins = cells
        .iter()
        .position(|cell| cell.text != " ")
        .unwrap_or(full)
        .min(full);
    let filled = |at: usize, thirds| {
        cells[..at].iter().map(|cell| cell.wide).sum::<usize>() * 3 >= columns * thirds
    };
    let places = || (begins + 1..=full).rev();
    // Inside a linked address, a row is broken only if the address begins the row.
    let in_address = |at: usize| {
        let link = cells[at].span.link();
        link.is_some() && link == cells[at - 1].span.link() && link != cells[begins].span.link()
    };
    let good = places()
        .find(|at| may_break_between(&cells[*at - 1], &cells[*at]))
        .filter(|at| blanks == BreakBlanks::Dropped || filled(*at, THIRDS_AT_BLANK));
    good.or_else(|| {
        places().find(|at| {
            cells[*at - 1].text.starts_with(|c| BREAK_SIGNS.contains(c))
                && cells[*at].text.starts_with(char::is_alphanumeric)
                && !in_address(*at)
                && filled(*at, THIRDS_AT_SIGN)
        })
    })
    .or_else(|| places().find(|at| !in_address(*at)))
    .unwrap_or(full)
}

fn may_break_between(before: &StyledCell<'_>, after: &StyledCell<'_>) -> bool {
    let apart = (before.wide > 1 || after.wide > 1)
        && !after.text.starts_with(|c| CLOSING.contains(c))
        && !before.text.starts_with(|c| OPENING.contains(c));
    before.text == " " || after.text == " " || apart
}

/// Characters that must not start a row.
const CLOSING: &str = "。，、；：？！）」』】》”’)]},.;:!?";
/// Characters that must not end a row.
const OPENING: &str = "（「『【《“‘([{";
/// Punctuation after which long words, paths and code may be broken.
const BREAK_SIGNS: &str = "/-_.,;:=&|+)]}>(?#@";

/// Breaks rows that are still too wide: some combinations of characters are wider than the sum of
/// their characters.
fn break_wide_rows(rows: Vec<StyledLine>, columns: usize) -> Vec<StyledLine> {
    if rows.iter().all(|row| row.width() <= columns) {
        return rows;
    }
    rows.iter()
        .flat_map(|row| {
            if row.width() <= columns {
                vec![row.clone()]
            } else {
                break_measured_line(row, columns)
            }
        })
        .collect()
}

/// Breaks a line into rows, measuring the width of each row as a whole.
fn break_measured_line(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    let mut rows = vec![StyledLine::empty()];
    for span in line.spans() {
        for piece in split_graphemes(span.text(), columns) {
            let last = rows.len() - 1;
            let mut longer = rows[last].clone();
            longer.push(span.part(piece));
            if longer.width() > columns {
                rows.push(StyledLine::empty());
                longer = StyledLine::empty();
                longer.push(span.part(piece));
            }
            let last = rows.len() - 1;
            rows[last] = longer;
        }
    }
    rows
}

/// Wraps a line. `first` is put before the first row and `rest` before all other rows; `columns`
/// includes the widths of `first` and `rest`.
pub(crate) fn wrap_hanging(
    line: &StyledLine,
    first: &StyledLine,
    rest: &StyledLine,
    columns: usize,
) -> Vec<StyledLine> {
    let line = line.link_addresses();
    let room = columns.saturating_sub(first.width().max(rest.width()));
    if let Some(address) = find_wide_address(&line, room) {
        return wrap_around_address(&line, address, [first, rest], columns);
    }
    let rows = break_rows(&line, room, BreakBlanks::Dropped);
    let fronted = |(at, row): (usize, StyledLine)| {
        let front = if at == 0 { first } else { rest };
        front.clone().joined_with(&row)
    };
    rows.into_iter().enumerate().map(fronted).collect()
}

/// Returns true if the line contains a web address that is wider than `room` columns.
pub(crate) fn has_wide_address(line: &StyledLine, room: usize) -> bool {
    find_wide_address(line, room).is_some()
}

/// Returns the byte range of the first web address that is wider than `room` columns. Without room
/// for a row, addresses are broken like other text.
fn find_wide_address(line: &StyledLine, room: usize) -> Option<Range<usize>> {
    if room < MIN_COLUMNS {
        return None;
    }
    find_addresses(&line.plain())
        .into_iter()
        .find(|range| range.len() > room)
}

/// Wraps a line with a web address that is wider than a row. The address begins a row and continues
/// in the first column of the next ones.
fn wrap_around_address(
    line: &StyledLine,
    address: Range<usize>,
    [first, rest]: [&StyledLine; 2],
    columns: usize,
) -> Vec<StyledLine> {
    let (before, found) = line.split_at(address.start);
    let (mut address, after) = found.split_at(address.len());
    let mut rows = if before.plain().trim().is_empty() {
        Vec::new()
    } else {
        let end = before.plain().trim_end_matches(' ').len();
        wrap_hanging(&before.split_at(end).0, first, rest, columns)
    };
    let mut front = if rows.is_empty() { first } else { rest }.clone();
    // An address consists of ASCII characters, so that each byte takes one column.
    while front.width() + address.width() > columns {
        let (piece, remaining) = address.split_at(columns - front.width());
        rows.push(front.clone().joined_with(&piece).with_continuation());
        front = StyledLine::empty();
        address = remaining;
    }
    let last = front.clone().joined_with(&address);
    if last.width() + after.width() <= columns {
        rows.push(last.clone().joined_with(&after));
    } else {
        rows.push(last);
        let behind = after.plain();
        let blanks = behind.len() - behind.trim_start_matches(' ').len();
        rows.extend(wrap_hanging(&after.split_at(blanks).1, rest, rest, columns));
    }
    rows
}

/// Splits text into graphemes. A grapheme that is wider than a row is split into characters.
fn split_graphemes(text: &str, columns: usize) -> impl Iterator<Item = &str> {
    text.graphemes(true).flat_map(move |one| {
        let whole = display_width(one) <= columns;
        let parts = one
            .char_indices()
            .map(move |(at, c)| &one[at..at + c.len_utf8()]);
        whole
            .then_some(one)
            .into_iter()
            .chain(parts.filter(move |_| !whole))
    })
}

fn join_cells(cells: &[StyledCell<'_>], blanks: BreakBlanks) -> StyledLine {
    let blank = match blanks {
        BreakBlanks::Dropped => cells
            .iter()
            .rev()
            .take_while(|cell| cell.text == " ")
            .count(),
        BreakBlanks::Kept => 0,
    };
    let mut line = StyledLine::empty();
    let mut cells = cells[..cells.len() - blank].iter().peekable();
    while let Some(first) = cells.next() {
        let mut text = first.text.to_owned();
        while let Some(next) = cells.next_if(|next| std::ptr::eq(next.span, first.span)) {
            text.push_str(next.text);
        }
        line.push(first.span.part(&text));
    }
    line
}

/// Draws a name and its description side by side, or the description below the name if there is too
/// little room.
pub(crate) fn draw_definition_rows(
    name: &str,
    text: &str,
    beside: usize,
    columns: usize,
) -> Vec<StyledLine> {
    let meaning = StyledLine::new(text, TextStyle::Plain);
    let blank = |count: usize| StyledLine::new(" ".repeat(count), TextStyle::Plain);
    let front = beside.max(display_width(name)) + 4;
    if front + MIN_COLUMNS * 3 > columns {
        let mut rows = vec![StyledLine::new(format!("  {name}"), TextStyle::Accent).cut(columns)];
        rows.extend(wrap_hanging(&meaning, &blank(4), &blank(4), columns));
        return rows;
    }
    let gap = " ".repeat(front - 2 - display_width(name));
    wrap_hanging(
        &meaning,
        &StyledLine::new(format!("  {name}{gap}"), TextStyle::Accent),
        &blank(front),
        columns,
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped_rows(text: &str, columns: usize) -> Vec<String> {
        wrap_line(&StyledLine::new(text, TextStyle::Plain), columns)
            .iter()
            .map(StyledLine::plain)
            .collect()
    }

    #[test]
    fn wrap_breaks_between_words() {
        assert_eq!(
            wrapped_rows("the quick brown fox", 10),
            ["the quick", "brown fox"]
        );
        assert_eq!(wrapped_rows("abcdefghijkl mn", 8), ["abcdefgh", "ijkl mn"]);
        assert_eq!(wrapped_rows("日本語日本語", 9), ["日本語日", "本語"]);
        assert_eq!(
            wrapped_rows("按 Esc 取消，之后没有改动。", 12),
            ["按 Esc 取", "消，之后没有", "改动。"]
        );
    }

    #[test]
    fn wrap_breaks_long_words_after_punctuation() {
        assert_eq!(
            wrapped_rows("run --with-a-long-argument=value", 20),
            ["run", "--with-a-long-", "argument=value"]
        );
        let code = |text: &str, columns| -> Vec<_> {
            wrap_code(&StyledLine::new(text, TextStyle::Code), columns)
                .iter()
                .map(StyledLine::plain)
                .collect()
        };
        assert_eq!(
            code("    let sum = of.iter().copied().reduce(|a, b| a + b);", 34),
            ["    let sum = of.iter().copied().", "reduce(|a, b| a + b);"]
        );
        assert_eq!(
            code("cp README.md a/b/readme-copy.md", 18),
            ["cp README.md ", "a/b/readme-copy.md"]
        );
        assert_eq!(code(&"x".repeat(12), 8), ["xxxxxxxx", "xxxx"]);
    }

    #[test]
    fn definition_rows_puts_text_beside_or_below_the_name() {
        let shown = |columns| -> Vec<_> {
            draw_definition_rows("/commit", "commit what is staged, with a hint", 8, columns)
                .iter()
                .map(StyledLine::plain)
                .collect()
        };
        assert_eq!(
            shown(80),
            ["  /commit   commit what is staged, with a hint"]
        );
        assert_eq!(
            shown(40),
            [
                "  /commit   commit what is staged, with",
                "            a hint"
            ]
        );
        assert_eq!(
            shown(30),
            ["  /commit", "    commit what is staged,", "    with a hint"]
        );
    }

    #[test]
    fn wrap_splits_characters_that_are_wider_together() {
        let line = StyledLine::new(" !0𐹠0!a¡!a𑍇", TextStyle::Plain);
        for columns in 8..12 {
            let all = [wrap_line(&line, columns), wrap_code(&line, columns)];
            assert!(
                all.iter().flatten().all(|row| row.width() <= columns),
                "{all:?}"
            );
        }
    }

    #[test]
    fn wrap_keeps_styles() {
        let line = StyledLine::new("plain words ", TextStyle::Plain)
            .with_text("and strong ones", TextStyle::Strong);
        let rows = wrap_line(&line, 14);
        assert_eq!(
            rows[1].spans(),
            [StyledSpan::new("and strong", TextStyle::Strong)]
        );
    }

    #[test]
    fn wrap_hanging_indents_all_rows() {
        let line = StyledLine::new("one two three", TextStyle::Plain);
        let rows = wrap_hanging(
            &line,
            &StyledLine::new("• ", TextStyle::Dim),
            &StyledLine::new("  ", TextStyle::Plain),
            10,
        );
        assert_eq!(
            rows.iter().map(StyledLine::plain).collect::<Vec<_>>(),
            ["• one two", "  three"]
        );
    }

    #[test]
    fn wrap_keeps_addresses_whole() {
        let shown = |text: &str, columns| -> Vec<_> {
            let bullet = StyledLine::new("• ", TextStyle::Dim);
            let rest = StyledLine::new("  ", TextStyle::Plain);
            wrap_hanging(
                &StyledLine::new(text, TextStyle::Plain),
                &bullet,
                &rest,
                columns,
            )
            .iter()
            .map(|row| (row.plain(), row.continues()))
            .collect()
        };
        let row = |text: &str, continues| (text.to_owned(), continues);
        assert_eq!(
            shown("look at https://a.test/b/c, then go", 22),
            [
                row("• look at", false),
                row("  https://a.test/b/c,", false),
                row("  then go", false)
            ]
        );
        assert_eq!(
            shown("look at https://a.test/b/c?d=e, then go", 16),
            [
                row("• look at", false),
                row("  https://a.test", true),
                row("/b/c?d=e", false),
                row("  , then go", false)
            ]
        );
        let rows = wrap_line(
            &StyledLine::new("https://a.test/b/c?d=e", TextStyle::Plain),
            12,
        );
        assert!(
            rows.iter()
                .flat_map(StyledLine::spans)
                .all(|span| span.link() == Some("https://a.test/b/c?d=e")),
            "each part opens the whole address: {rows:?}"
        );
    }

    proptest! {
        #[test]
        fn wrap_of_addresses_fits_and_loses_nothing(
            words in prop::collection::vec("(https?://[a-z/.?=)]{0,40}|[a-z日。(]{1,9})", 0..6),
            columns in MIN_COLUMNS..40,
        ) {
            let line = StyledLine::new(words.join(" "), TextStyle::Plain);
            let rows = wrap_line(&line, columns);
            prop_assert!(rows.iter().all(|row| row.width() <= columns));
            prop_assert!(rows.iter().all(|row| !row.continues() || row.width() == columns));
            let without = |text: String| text.replace(' ', "");
            prop_assert_eq!(without(rows.iter().map(StyledLine::plain).collect()), without(line.plain()));
        }

        #[test]
        fn wrap_fits_and_loses_nothing(text in any::<String>(), columns in MIN_INDENTED_COLUMNS..40) {
            let line = StyledLine::new(&text, TextStyle::Plain);
            let wrapped = wrap_line(&line, columns);
            let chopped = wrap_code(&line, columns);
            prop_assert!(wrapped.iter().chain(&chopped).all(|row| row.width() <= columns));
            let without = |text: String| text.replace(' ', "");
            prop_assert_eq!(without(wrapped.iter().map(StyledLine::plain).collect()), without(line.plain()));
            prop_assert_eq!(chopped.iter().map(StyledLine::plain).collect::<String>(), line.plain());
        }
    }
}
