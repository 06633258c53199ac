//! Draws a table of Markdown.
//!
//! Invariant: no text of a cell is omitted. Columns that don't fit side by side are narrowed and
//! their cells wrapped; only if a column would become narrower than [`MIN_CELL_COLUMNS`], each row
//! is drawn as a record, with a line for each cell.

use pulldown_cmark::Alignment;

use crate::line::{StyledLine, StyledSpan, TextStyle};
use crate::wrap::wrap_line;

/// The minimum width to which a column is narrowed.
const MIN_CELL_COLUMNS: usize = 12;
/// The number of spaces between two columns.
const GAP_COLUMNS: usize = 2;

/// Draws a table in at most `columns` columns.
pub(super) fn draw_table(
    rows: &[Vec<StyledLine>],
    alignments: &[Alignment],
    columns: usize,
) -> Vec<StyledLine> {
    let Some((head, body)) = rows.split_first() else {
        return Vec::new();
    };
    let Some(widths) = fit_columns(rows, columns) else {
        return draw_records(head, body);
    };
    let total = widths.iter().sum::<usize>() + GAP_COLUMNS * widths.len().saturating_sub(1);
    let has_wrapped_cells = rows
        .iter()
        .flat_map(|row| row.iter().zip(&widths))
        .any(|(cell, width)| cell.width() > *width);
    let mut laid = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        // Without a blank row, the rows of wrapped cells would run into each other.
        if has_wrapped_cells && number > 1 {
            laid.push(StyledLine::empty());
        }
        let row: Vec<_> = if number == 0 {
            row.iter().map(emphasize).collect()
        } else {
            row.clone()
        };
        laid.extend(draw_row(&row, &widths, alignments));
        if number == 0 {
            laid.push(StyledLine::new("─".repeat(total), TextStyle::Dim));
        }
    }
    laid
}

/// Returns the width of each column, or `None` if a column would be too narrow to read. Wide
/// columns are narrowed first, so that short columns keep their width.
fn fit_columns(rows: &[Vec<StyledLine>], columns: usize) -> Option<Vec<usize>> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let natural = |at: usize| {
        rows.iter()
            .filter_map(|row| row.get(at))
            .map(StyledLine::width)
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<_> = (0..count).map(natural).collect();
    let mut room = columns.checked_sub(GAP_COLUMNS * count.saturating_sub(1))?;
    if widths.iter().sum::<usize>() <= room {
        return Some(widths);
    }
    let mut order: Vec<_> = (0..count).collect();
    order.sort_by_key(|at| widths[*at]);
    let mut fitted = widths.clone();
    for (done, at) in order.into_iter().enumerate() {
        let share = room / (count - done);
        fitted[at] = widths[at].min(share);
        room -= fitted[at];
    }
    let is_readable =
        |(fitted, natural): (&usize, &usize)| fitted == natural || *fitted >= MIN_CELL_COLUMNS;
    fitted
        .iter()
        .zip(&widths)
        .all(is_readable)
        .then_some(fitted)
}

/// Draws one row of the table, as many screen rows as its highest cell.
fn draw_row(
    row: &[StyledLine],
    widths: &[usize],
    alignments: &[Alignment],
) -> impl Iterator<Item = StyledLine> {
    let cells: Vec<_> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| wrap_line(cell, *width))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line_at = move |at: usize| {
        let mut line = StyledLine::empty();
        for (column, cell) in cells.iter().enumerate() {
            let text = cell.get(at).cloned().unwrap_or_default();
            let blank = widths[column].saturating_sub(text.width());
            let before = match alignments.get(column) {
                Some(Alignment::Right) => blank,
                Some(Alignment::Center) => blank / 2,
                Some(Alignment::Left | Alignment::None) | None => 0,
            };
            line.push(StyledSpan::new(" ".repeat(before), TextStyle::Plain));
            text.spans().iter().for_each(|span| line.push(span.clone()));
            if column + 1 < cells.len() {
                let after = blank - before + GAP_COLUMNS;
                line.push(StyledSpan::new(" ".repeat(after), TextStyle::Plain));
            }
        }
        line
    };
    (0..height).map(line_at).collect::<Vec<_>>().into_iter()
}

fn emphasize(cell: &StyledLine) -> StyledLine {
    cell.spans()
        .iter()
        .map(|span| span.clone().with_style(TextStyle::Strong))
        .collect()
}

/// Draws each row as a list of cells, each after the name of its column.
fn draw_records(head: &[StyledLine], body: &[Vec<StyledLine>]) -> Vec<StyledLine> {
    let mut laid = Vec::new();
    for row in body {
        if !laid.is_empty() {
            laid.push(StyledLine::empty());
        }
        for (at, cell) in row.iter().enumerate() {
            let name = head.get(at).map(StyledLine::plain).unwrap_or_default();
            let mut line = StyledLine::new(format!("{name}: "), TextStyle::Strong);
            cell.spans().iter().for_each(|span| line.push(span.clone()));
            laid.push(line);
        }
    }
    if body.is_empty() {
        laid.extend(head.iter().cloned());
    }
    laid
}
