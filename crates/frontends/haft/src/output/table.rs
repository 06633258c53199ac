//! Columns for people: as wide as their content, names cut to a readable length.

use std::fmt;

const WIDEST: usize = 48;

/// A table with headings.
pub(crate) struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// An empty table.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        let cells = cells
            .into_iter()
            .map(|cell| haft_text::truncate_to_width(&haft_text::sanitise(&cell), WIDEST).into_owned());
        self.rows.push(cells.collect());
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| haft_text::width(cell)).max();
        let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width.saturating_sub(haft_text::width(cell)) + 2));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_width_not_by_bytes() {
        let mut table = TextTable::new(&["NAME", "N"]);
        table.row(vec!["漢字".into(), "1".into()]);
        table.row(vec!["a".into(), "22".into()]);
        assert_eq!(table.to_string(), "NAME  N\n漢字  1\na     22\n");
    }
}
