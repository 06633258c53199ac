//! Shows whole results in place of the live region: scrolls, searches, and switches between
//! results.
//!
//! Invariant: the viewer fits the rows it is given, and each row of the result is exactly one row
//! on the screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::call::ToolCallView;
use crate::line::{StyledLine, TextStyle};

/// The tool results and the reasoning that the viewer can open, oldest first. Their number and
/// total size are limited.
#[derive(Debug, Default)]
pub(crate) struct ResultList {
    results: Vec<(ToolCallView, String)>,
}

/// The maximum number of results that the viewer can open.
pub const MAX_RESULTS: usize = 500;

impl ResultList {
    /// The maximum total size of the results, in bytes. The results are copies: the complete texts
    /// are in the conversation.
    const MAX_BYTES: usize = 4 * 1024 * 1024;

    pub(crate) fn push(&mut self, call: ToolCallView, text: &str) {
        self.results.push((call, text.to_owned()));
        let mut bytes = 0;
        let fits = |(_, text): &&(ToolCallView, String)| {
            bytes += text.len();
            bytes <= Self::MAX_BYTES
        };
        let kept = self
            .results
            .iter()
            .rev()
            .take(MAX_RESULTS)
            .take_while(fits)
            .count()
            .max(1);
        self.results.drain(..self.results.len() - kept);
    }

    pub(crate) fn last(&self) -> Option<&(ToolCallView, String)> {
        self.results.last()
    }
}

/// The position of the viewer: the open result and the first visible row.
#[derive(Debug, Default)]
pub(crate) struct ResultViewer {
    /// The index of the open result, counted from the newest.
    back: usize,
    /// The index of the first visible row.
    top: usize,
    query: String,
    /// True while the user types a search query.
    typing: bool,
}

/// The effect that a key has on the viewer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ViewerOutcome {
    Stay,
    Close,
    /// The viewer is closed, and these rows are printed.
    Print(Vec<StyledLine>),
}

impl ResultViewer {
    /// Handles a key. `columns` and `height` are the size of the viewer.
    pub(crate) fn handle_key(
        &mut self,
        key: KeyEvent,
        list: &ResultList,
        columns: usize,
        height: usize,
    ) -> ViewerOutcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let rows = self.result_rows(list, columns);
        let room = height.saturating_sub(2).max(1);
        let last = rows.len().saturating_sub(room);
        if self.typing {
            self.edit_query(key, &rows);
            return ViewerOutcome::Stay;
        }
        match key.code {
            KeyCode::Char('c' | 'o' | 'g') if control => return ViewerOutcome::Close,
            KeyCode::Esc | KeyCode::Char('q') => return ViewerOutcome::Close,
            KeyCode::Enter => return ViewerOutcome::Print(rows),
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.min(last).saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.top = (self.top + 1).min(last),
            KeyCode::PageUp | KeyCode::Char('b') => {
                self.top = self.top.min(last).saturating_sub(room);
            }
            KeyCode::PageDown | KeyCode::Char(' ') => self.top = (self.top + room).min(last),
            KeyCode::Home | KeyCode::Char('g') => self.top = 0,
            KeyCode::End | KeyCode::Char('G') => self.top = last,
            KeyCode::Left | KeyCode::Char('[') if self.back + 1 < list.results.len() => {
                (self.back, self.top) = (self.back + 1, 0);
            }
            KeyCode::Right | KeyCode::Char(']') if self.back > 0 => {
                (self.back, self.top) = (self.back - 1, 0);
            }
            KeyCode::Char('/') => (self.typing, self.query) = (true, String::new()),
            KeyCode::Char('n') => self.move_to_match(&rows, true),
            KeyCode::Char('N') => self.move_to_match(&rows, false),
            _ => {}
        }
        ViewerOutcome::Stay
    }

    fn edit_query(&mut self, key: KeyEvent, rows: &[StyledLine]) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => (self.typing, self.query) = (false, String::new()),
            KeyCode::Char('c' | 'g') if control => {
                (self.typing, self.query) = (false, String::new());
            }
            KeyCode::Enter => self.typing = false,
            KeyCode::Backspace => drop(self.query.pop()),
            KeyCode::Char(c) if !control => self.query.push(c),
            _ => {}
        }
        let found = self.matching_rows(rows);
        if let Some(first) = found.iter().find(|row| **row >= self.top).or(found.first()) {
            self.top = *first;
        }
    }

    /// Moves to the next matching row, or to the previous one if `down` is false. Continues at the
    /// other end of the text if no match is left.
    fn move_to_match(&mut self, rows: &[StyledLine], down: bool) {
        let found = self.matching_rows(rows);
        let next = if down {
            found.iter().find(|row| **row > self.top).or(found.first())
        } else {
            found
                .iter()
                .rev()
                .find(|row| **row < self.top)
                .or(found.last())
        };
        self.top = next.copied().unwrap_or(self.top);
    }

    fn matching_rows(&self, rows: &[StyledLine]) -> Vec<usize> {
        let query = self.query.to_lowercase();
        rows.iter()
            .enumerate()
            .filter(|(_, row)| !query.is_empty() && row.plain().to_lowercase().contains(&query))
            .map(|(at, _)| at)
            .collect()
    }

    fn result_rows(&self, list: &ResultList, columns: usize) -> Vec<StyledLine> {
        let at = list.results.len().checked_sub(self.back + 1);
        at.and_then(|at| list.results.get(at))
            .map(|(call, text)| call.draw_opened(text, columns))
            .unwrap_or_default()
    }

    /// Draws the viewer. While a query is typed, also returns the column of the cursor in the last
    /// row.
    pub(crate) fn draw_viewer(
        &self,
        list: &ResultList,
        columns: usize,
        height: usize,
    ) -> (Vec<StyledLine>, Option<usize>) {
        let all = self.result_rows(list, columns);
        let found = self.matching_rows(&all);
        let room = height.saturating_sub(2).max(1);
        let row = |(at, row): (usize, &StyledLine)| {
            if found.contains(&at) {
                StyledLine::new(row.plain(), TextStyle::Warning)
            } else {
                row.clone()
            }
        };
        // After a match near the end, less than a page of rows may be left.
        let mut rows: Vec<_> = all
            .iter()
            .enumerate()
            .skip(self.top)
            .take(room)
            .map(row)
            .collect();
        rows.resize(room.min(all.len()), StyledLine::empty());
        rows.push(StyledLine::empty());
        if self.typing {
            let line = StyledLine::new("/", TextStyle::Accent)
                .with_text(&self.query, TextStyle::Plain)
                .cut(columns);
            let column = line.width().min(columns.saturating_sub(1));
            rows.push(line);
            return (rows, Some(column));
        }
        rows.push(self.draw_position(list, &found).cut(columns));
        (rows, None)
    }

    /// Draws a line that shows the position among the results, the position among the matches, and
    /// the keys.
    fn draw_position(&self, list: &ResultList, found: &[usize]) -> StyledLine {
        let count = list.results.len();
        let place = text!(
            "app-viewer-place",
            at = count.saturating_sub(self.back),
            count
        );
        let matches = match (
            self.query.is_empty(),
            found.iter().position(|row| *row == self.top),
        ) {
            (true, _) => String::new(),
            (false, None) if found.is_empty() => format!("{} · ", text!("app-nothing-found")),
            (false, at) => {
                format!(
                    "{} · ",
                    text!(
                        "app-viewer-match",
                        at = at.map_or(0, |at| at + 1),
                        count = found.len()
                    )
                )
            }
        };
        StyledLine::new(
            format!("{matches}{place} · {}", text!("app-viewer-keys")),
            TextStyle::Dim,
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(texts: &[&str]) -> ResultList {
        let mut list = ResultList::default();
        for text in texts {
            list.push(ToolCallView::new("1", "read_file"), text);
        }
        list
    }

    fn press(viewer: &mut ResultViewer, list: &ResultList, keys: &str) {
        for c in keys.chars() {
            let code = if c == '\n' {
                KeyCode::Enter
            } else {
                KeyCode::Char(c)
            };
            viewer.handle_key(KeyEvent::new(code, KeyModifiers::NONE), list, 40, 6);
        }
    }

    fn drawn_text(viewer: &ResultViewer, list: &ResultList) -> String {
        viewer
            .draw_viewer(list, 40, 6)
            .0
            .iter()
            .map(|row| row.plain() + "\n")
            .collect()
    }

    #[test]
    fn viewer_search_wraps_and_switches_results() {
        let text = (1..=30)
            .map(|number| format!("line {number}"))
            .collect::<Vec<_>>()
            .join("\n");
        let list = list(&["the first result", &text]);
        let mut viewer = ResultViewer::default();
        press(&mut viewer, &list, "/LINE 2\n");
        assert!(
            drawn_text(&viewer, &list).starts_with("  line 2\n"),
            "{}",
            drawn_text(&viewer, &list)
        );
        press(&mut viewer, &list, "n");
        assert!(drawn_text(&viewer, &list).starts_with("  line 20\n"));
        press(&mut viewer, &list, "NN");
        assert!(
            drawn_text(&viewer, &list).starts_with("  line 29\n"),
            "around"
        );
        press(&mut viewer, &list, "/nowhere\n");
        assert!(drawn_text(&viewer, &list).contains("No match"));
        press(&mut viewer, &list, "[");
        assert!(
            drawn_text(&viewer, &list).contains("the first result")
                && drawn_text(&viewer, &list).contains("1 of 2")
        );
        press(&mut viewer, &list, "[]");
        assert!(drawn_text(&viewer, &list).contains("2 of 2"));
    }

    #[test]
    fn viewer_drops_the_oldest_results() {
        let long = "x".repeat(ResultList::MAX_BYTES / 2);
        let list = list(&["a", &long, &long, &long]);
        assert_eq!(list.results.len(), 2);
    }

    proptest! {
        #[test]
        fn viewer_fits(text in any::<String>(), keys in "[jkbgGn/ xN\n\\[\\]]{0,20}", columns in 8usize..60, height in 3usize..20) {
            let list = list(&["x", &text]);
            let mut viewer = ResultViewer::default();
            press(&mut viewer, &list, &keys);
            let (rows, cursor) = viewer.draw_viewer(&list, columns, height);
            prop_assert!(rows.len() <= height && rows.iter().all(|row| row.width() <= columns));
            prop_assert!(cursor.is_none_or(|column| column < columns));
        }
    }
}
