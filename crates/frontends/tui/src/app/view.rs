//! The layout of the live region: the arriving reply, the open question, the input, the status
//! line.
//!
//! Invariant: the region is at least one row shorter than the terminal and no wider than the
//! terminal. The input and the status line are always visible; rows above them are cut from the
//! top.

use super::choices::describe_mode;
use super::help::draw_key_help;
use super::{App, Hint, LiveRegion};
use crate::line::{StyledLine, TextStyle};

/// The minimum width of the status beside the working line, in columns: the longest name of a mode.
const MIN_STATUS_COLUMNS: usize = 12;

impl App {
    /// Draws the live region.
    pub fn draw_frame(&self) -> LiveRegion {
        let columns = self.scrollback.columns().max(1);
        let height = self.rows.saturating_sub(1).max(3);
        if let Some(viewer) = self.dialogs.viewer() {
            let (rows, typed) = viewer.draw_viewer(self.turn.results(), columns, height);
            let cursor = (rows.len().saturating_sub(1), typed.unwrap_or(0));
            return LiveRegion {
                rows,
                cursor,
                shows_cursor: typed.is_some(),
            };
        }
        let (mut below, cursor) = self
            .dialogs
            .draw_picker(columns, height.saturating_sub(1))
            .unwrap_or_else(|| {
                self.composer
                    .draw_input(columns, height, self.placeholder_text())
            });
        below.extend(self.composer.completions().draw_menu(columns));
        if self.dialogs.shows_keys() {
            below.extend(draw_key_help(
                columns,
                height.saturating_sub(below.len() + 2),
            ));
        }
        below.push(self.draw_last_row(columns));
        let room = height.saturating_sub(below.len());
        let mut rows = self.draw_rows_above_input(columns, room);
        if rows.len() > room {
            rows.drain(..rows.len() - room);
        }
        let cursor = (rows.len() + cursor.0, cursor.1);
        rows.extend(below);
        rows.truncate(height);
        LiveRegion {
            rows,
            cursor,
            shows_cursor: !self.dialogs.hides_cursor(),
        }
    }

    /// Returns the placeholder text that an empty input shows before the first prompt.
    fn placeholder_text(&self) -> Option<&'static str> {
        let is_waiting = self.has_placeholder
            && !self.turn.is_busy()
            && self.conversation.is_none()
            && !self.dialogs.has_question()
            && !self.dialogs.shows_keys();
        is_waiting.then(|| text!("app-placeholder"))
    }

    fn draw_rows_above_input(&self, columns: usize, room: usize) -> Vec<StyledLine> {
        let asked = self.dialogs.approval().map(|dialog| &dialog.approval);
        let mut rows = self.turn.draw_live_rows(asked, columns);
        rows.extend(self.composer.draw_queue(columns));
        rows.push(StyledLine::empty());
        rows.extend(self.dialogs.draw_question(columns, room));
        rows
    }

    fn draw_last_row(&self, columns: usize) -> StyledLine {
        let hint = match self.hint {
            Some(Hint::QuitAgain) => text!("app-quit-again"),
            Some(Hint::RewindAgain) => text!("app-rewind-again"),
            Some(Hint::Mode(mode)) => {
                let name = mode.name();
                let meaning = describe_mode(mode);
                let text = text!("app-mode-meaning", mode = name, meaning);
                let rest = text.strip_prefix(name).unwrap_or_default();
                return StyledLine::new(name, TextStyle::Warning)
                    .with_text(rest, TextStyle::Plain)
                    .cut(columns);
            }
            Some(Hint::Interrupting) => text!("app-interrupting"),
            Some(Hint::NothingToOpen) => text!("app-nothing-to-open"),
            None if self.turn.is_busy() && !self.dialogs.has_question() => {
                let line = self
                    .turn
                    .draw_working_line(self.composer.has_queue(), columns);
                let line_with_mark = line.clone().with_text(" · ", TextStyle::Dim);
                let room = columns.saturating_sub(line_with_mark.width());
                let status = self.status.draw_line(room);
                if room < MIN_STATUS_COLUMNS {
                    return line.cut(columns);
                }
                return line_with_mark
                    .spans()
                    .iter()
                    .chain(status.spans())
                    .cloned()
                    .collect::<StyledLine>()
                    .cut(columns);
            }
            None => return self.status.draw_line(columns),
        };
        StyledLine::new(hint, TextStyle::Warning).cut(columns)
    }
}
