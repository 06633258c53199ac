//! Tables for people: columns are as wide as their content, and long cells are shortened.

use std::fmt;

const MAX_CELL_COLUMNS: usize = 48;
/// The width, in terminal columns, below which cells are not shortened.
const MIN_CELL_COLUMNS: usize = 16;

/// A table for people, whose first row contains the headings.
pub(crate) struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self {
            rows: vec![
                headings
                    .iter()
                    .map(|heading| (*heading).to_owned())
                    .collect(),
            ],
        }
    }

    pub(crate) fn add_row(&mut self, cells: Vec<String>) {
        let cells = cells.into_iter().map(|cell| {
            haft_text::truncate_to_width(&haft_text::sanitize(&cell), MAX_CELL_COLUMNS).into_owned()
        });
        self.rows.push(cells.collect());
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format_within(super::available_columns()))
    }
}

impl TextTable {
    /// Formats the table within `columns`. If shortening the widest column is not enough, each row
    /// becomes a paragraph of `heading: value` lines.
    fn format_within(&self, columns: Option<usize>) -> String {
        let count = self.rows.first().map_or(0, Vec::len);
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let widest = |column: usize| {
            cells(column)
                .map(|cell| haft_text::display_width(cell))
                .max()
                .unwrap_or(0)
        };
        let mut widths: Vec<_> = (0..count).map(widest).collect();
        let whole = |widths: &[usize]| widths.iter().sum::<usize>() + 2 * count.saturating_sub(1);
        if let Some(columns) = columns.filter(|columns| whole(&widths) > *columns) {
            let extra = whole(&widths) - columns;
            match widths.iter_mut().max_by_key(|width| **width) {
                Some(widest) if *widest >= extra + MIN_CELL_COLUMNS => *widest -= extra,
                _ => return self.format_paragraphs(),
            }
        }
        let numbers: Vec<_> = (0..count)
            .map(|column| is_numeric(cells(column).skip(1)))
            .collect();
        let line = |row: &Vec<String>| {
            let cell = |((cell, width), right): ((&String, &usize), &bool)| {
                let cell = haft_text::truncate_to_width(cell, *width);
                let blanks = " ".repeat(width.saturating_sub(haft_text::display_width(&cell)));
                if *right {
                    format!("{blanks}{cell}")
                } else {
                    format!("{cell}{blanks}")
                }
            };
            let cells: Vec<_> = row.iter().zip(&widths).zip(&numbers).map(cell).collect();
            cells.join("  ").trim_end().to_owned() + "\n"
        };
        self.rows.iter().map(line).collect()
    }

    fn format_paragraphs(&self) -> String {
        let Some((headings, rows)) = self.rows.split_first() else {
            return String::new();
        };
        let said = |row: &Vec<String>| {
            let cells = headings
                .iter()
                .zip(row)
                .filter(|(_, cell)| !cell.is_empty() && *cell != "-");
            cells
                .flat_map(|(heading, cell)| [heading, ": ", cell, "\n"])
                .collect::<String>()
        };
        rows.iter().map(said).collect::<Vec<_>>().join("\n")
    }
}

/// Returns true if a column contains only numbers, which are aligned to the right.
fn is_numeric<'a>(cells: impl Iterator<Item = &'a String>) -> bool {
    let mut digits = false;
    for cell in cells {
        digits |= cell.contains(|c: char| c.is_ascii_digit());
        // Longer numbers are grouped with commas, so this is an id that happens to have no letter.
        let is_id = cell.len() >= 8 && cell.chars().all(|c| c.is_ascii_digit());
        if is_id
            || !cell
                .chars()
                .all(|c| c.is_ascii_digit() || ",.$%+-≈".contains(c))
        {
            return false;
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_numeric_rejects_ids_of_digits() {
        let numeric = |cell: &str| is_numeric([cell.to_owned()].iter());
        assert!(numeric("12,345,678") && numeric("1234") && numeric("$0.067"));
        assert!(!numeric("40219357") && !numeric("4021935a"));
    }

    #[test]
    fn table_aligns_columns_by_width_not_bytes() {
        let mut table = TextTable::new(&["NAME", "N"]);
        table.add_row(vec!["漢字".into(), "1".into()]);
        table.add_row(vec!["a".into(), "22".into()]);
        assert_eq!(table.format_within(None), "NAME   N\n漢字   1\na     22\n");
    }

    #[test]
    fn table_fits_its_terminal() {
        let mut table = TextTable::new(&["ID", "NAME", "MESSAGES"]);
        table.add_row(vec![
            "3589b043".into(),
            "a conversation with a long name".into(),
            "1,200".into(),
        ]);
        table.add_row(vec!["aa".into(), "b".into(), "-".into()]);
        assert_eq!(
            table.format_within(Some(40)),
            "ID        NAME                  MESSAGES\n3589b043  a conversation with…     1,200\naa        b                            -\n"
        );
        assert_eq!(
            table.format_within(Some(20)),
            "ID: 3589b043\nNAME: a conversation with a long name\nMESSAGES: 1,200\n\nID: aa\nNAME: b\n"
        );
        assert!(
            table
                .format_within(Some(80))
                .starts_with("ID        NAME                             MESSAGES\n")
        );
    }
}
