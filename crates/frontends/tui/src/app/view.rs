//! How the live region looks: what is arriving, what runs, what is asked, the input, the status
//! line.
//!
//! Invariant: it is never higher than the terminal less one row, nor wider than it is. The input
//! and the status line are always there; what is above them gives way from the top.

use haft_types::PermissionMode;

use super::submit::HELP_NAMES;
use super::{App, Hint, LiveRegion, Queued};
use crate::approval::ApprovalStage;
use crate::commands;
use crate::line::{StyledLine, TextStyle};
use crate::wrap::{defined, hang};

/// Rows of the input.
const INPUT_ROWS: usize = 10;
/// Rows of a list to choose from, with its title and its keys.
const PICKER_ROWS: usize = 16;
/// Rows of what a word could become.
const MENU_ROWS: usize = 6;
/// Columns in which a key and what it does are legible.
const KEYS_COLUMNS: usize = 62;
const PROMPT: &str = "> ";
/// How much of the end of the model's thinking is shown.
const THOUGHT_BYTES: usize = 600;

impl App {
    /// The live region as it is now.
    pub fn frame(&self) -> LiveRegion {
        let columns = self.columns.max(1);
        let height = self.rows.saturating_sub(1).max(3);
        if let Some(viewer) = &self.viewer {
            let (rows, typed) = viewer.view(&self.results, columns, height);
            let cursor = (rows.len().saturating_sub(1), typed.unwrap_or(0));
            return LiveRegion {
                rows,
                cursor,
                shows_cursor: typed.is_some(),
            };
        }
        let mut below = Vec::new();
        let typed = if let Some(picker) = &self.picker {
            let (rows, cursor) = picker.view(columns, PICKER_ROWS.min(height.saturating_sub(1)));
            below.extend(rows);
            cursor
        } else if let Some(search) = &self.search {
            let found = self
                .editor
                .search(&search.query, search.skip)
                .unwrap_or(text!("app-nothing-found"));
            let line = StyledLine::of(format!("{} ", text!("app-search")), TextStyle::Accent)
                .and(&search.query, TextStyle::Strong);
            let column = line.width().min(columns - 1);
            below.push(
                line.and("  ", TextStyle::Plain)
                    .and(found.replace('\n', " "), TextStyle::Dim)
                    .cut(columns),
            );
            (0, column)
        } else {
            let mut typed = self
                .editor
                .view(PROMPT, columns, INPUT_ROWS.min(height / 2));
            let waits = !self.busy
                && self.conversation.is_none()
                && self.form.is_none()
                && self.asking.is_none();
            if waits && self.has_placeholder && self.editor.is_empty() && !self.shows_keys {
                let line = StyledLine::of(PROMPT, TextStyle::Accent)
                    .and(text!("app-placeholder"), TextStyle::Dim);
                typed.rows = vec![line.cut(columns)];
            }
            below.extend(typed.rows);
            (typed.row, typed.column.min(columns - 1))
        };
        below.extend(self.menu_rows(columns));
        if self.shows_keys {
            below.extend(key_rows(columns, height.saturating_sub(below.len() + 2)));
        }
        below.push(self.last_row(columns));
        let room = height.saturating_sub(below.len());
        let mut above = self.above(columns, room);
        if above.len() > room {
            above.drain(..above.len() - room);
        }
        let cursor = (above.len() + typed.0, typed.1);
        let choosing = self
            .asking
            .as_ref()
            .is_some_and(|asking| match asking.stage {
                ApprovalStage::Choose | ApprovalStage::Confirm(_) => true,
                ApprovalStage::Reason | ApprovalStage::Change | ApprovalStage::Rule => false,
            });
        above.extend(below);
        above.truncate(height);
        LiveRegion {
            rows: above,
            cursor,
            shows_cursor: !choosing,
        }
    }

    /// What stands above the input.
    fn above(&self, columns: usize, room: usize) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        let tail = self.answer.tail(columns);
        if self.answer.is_new() && !tail.is_empty() {
            rows.push(StyledLine::empty());
        }
        rows.extend(tail);
        if !self.thinking.trim().is_empty() {
            let from = self
                .thinking
                .ceil_char_boundary(self.thinking.len().saturating_sub(THOUGHT_BYTES));
            let last = self.thinking[from..]
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let rows_of_thought = hang(
                &StyledLine::of(last, TextStyle::Dim),
                &StyledLine::of("∴ ", TextStyle::Accent),
                &StyledLine::of("  ", TextStyle::Plain),
                columns,
            );
            let extra = rows_of_thought.len().saturating_sub(2);
            rows.extend(rows_of_thought.into_iter().skip(extra));
        }
        // A question stands right below what it is about.
        let asked = self.asking.as_ref().map(|asking| &asking.approval.tool);
        rows.extend(
            self.calls
                .iter()
                .filter(|call| asked != Some(&call.tool))
                .map(|call| call.running(self.activity.now(), columns)),
        );
        rows.extend(self.activity.rows(columns));
        if asked.is_none() {
            rows.extend(self.panes.rows(columns));
        }
        for Queued { text, .. } in &self.queue {
            rows.push(
                StyledLine::of(
                    format!("  {} {}", text!("app-queued"), text.replace('\n', " ")),
                    TextStyle::Dim,
                )
                .cut(columns),
            );
        }
        rows.push(StyledLine::empty());
        if let Some(asking) = &self.asking {
            rows.extend(asking.question_within(columns, room));
        }
        if let Some(filling) = &self.form {
            rows.extend(filling.question(columns));
        }
        rows
    }

    fn menu_rows(&self, columns: usize) -> Vec<StyledLine> {
        let Some(menu) = &self.menu else {
            return Vec::new();
        };
        let row = |(at, item): (usize, &crate::complete::CompletionItem)| {
            let (mark, style) = if at == menu.chosen {
                ("▸ ", TextStyle::Accent)
            } else {
                ("  ", TextStyle::Plain)
            };
            StyledLine::of(mark, style)
                .and(haft_text::reveal(&item.text), style)
                .and(format!("  {}", item.help), TextStyle::Dim)
                .cut(columns)
        };
        let count = menu.items.len();
        let first = (menu.chosen + 1).saturating_sub(MENU_ROWS);
        let mut rows: Vec<_> = menu
            .items
            .iter()
            .enumerate()
            .skip(first)
            .take(MENU_ROWS)
            .map(row)
            .collect();
        if count > MENU_ROWS {
            let place = text!("app-menu-place", at = menu.chosen + 1, count);
            rows.push(StyledLine::of(format!("  {place}"), TextStyle::Dim).cut(columns));
        }
        rows
    }

    fn last_row(&self, columns: usize) -> StyledLine {
        let hint = match self.hint {
            Some(Hint::QuitAgain) => text!("app-quit-again"),
            Some(Hint::RewindAgain) => text!("app-rewind-again"),
            Some(Hint::Mode(mode)) => {
                let front = StyledLine::of(mode.name(), TextStyle::Warning);
                return front
                    .and(format!(": {}", meaning(mode)), TextStyle::Plain)
                    .cut(columns);
            }
            Some(Hint::Interrupting) => text!("app-interrupting"),
            Some(Hint::NothingToOpen) => text!("app-nothing-to-open"),
            None | Some(Hint::Opened)
                if self.busy && self.asking.is_none() && self.form.is_none() =>
            {
                let line = self
                    .activity
                    .working(self.calls.is_empty())
                    .and(" · ", TextStyle::Dim);
                let room = columns.saturating_sub(line.width());
                let status = self.status.line(room);
                return line
                    .spans()
                    .iter()
                    .chain(status.spans())
                    .cloned()
                    .collect::<StyledLine>()
                    .cut(columns);
            }
            None | Some(Hint::Opened) => return self.status.line(columns),
        };
        StyledLine::of(hint, TextStyle::Warning).cut(columns)
    }
}

/// The keys, in as many columns as there is room for, and no more rows than these.
fn key_rows(columns: usize, at_most: usize) -> Vec<StyledLine> {
    let keys = commands::keys();
    let beside = (columns / KEYS_COLUMNS).clamp(1, 3);
    let room = columns / beside;
    let entries: Vec<_> = keys
        .iter()
        .map(|(key, help)| defined(key, help, HELP_NAMES, room - 1))
        .collect();
    let shown = entries.concat();
    let high = shown.len().div_ceil(beside);
    let row = |at: usize| -> StyledLine {
        let cells = shown.iter().skip(at).step_by(high);
        let filled = cells.map(|cell| {
            cell.clone().and(
                " ".repeat(room.saturating_sub(cell.width())),
                TextStyle::Plain,
            )
        });
        filled.flat_map(|cell| cell.spans().to_vec()).collect()
    };
    let mut rows: Vec<_> = (0..high).map(row).map(|row| row.cut(columns)).collect();
    if rows.len() > at_most {
        let left = at_most.saturating_sub(1);
        let ends = entries.iter().scan(0, |end, entry| {
            *end += entry.len();
            Some(*end)
        });
        // No key stands there without what it does.
        rows.truncate(if beside == 1 {
            ends.take_while(|end| *end <= left).last().unwrap_or(left)
        } else {
            left
        });
        rows.push(
            StyledLine::of(format!("  {}", text!("app-more-keys")), TextStyle::Dim).cut(columns),
        );
    }
    rows
}

/// What a mode means, in one row.
pub(super) fn meaning(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Plan => text!("app-mode-plan"),
        PermissionMode::Ask => text!("app-mode-ask"),
        PermissionMode::AcceptEdits => text!("app-mode-accept-edits"),
        PermissionMode::Auto => text!("app-mode-auto"),
        PermissionMode::Yolo => text!("app-mode-yolo"),
    }
}

/// The rows of what the user said.
pub(super) fn said(text: &str, columns: usize) -> Vec<StyledLine> {
    let first = StyledLine::of(PROMPT, TextStyle::Accent);
    let rest = StyledLine::of("  ", TextStyle::Plain);
    let mut rows = Vec::new();
    let shown: Vec<_> = text.lines().take(SAID_ROWS).collect();
    for (at, line) in shown.iter().enumerate() {
        let front = if at == 0 { &first } else { &rest };
        rows.extend(hang(
            &StyledLine::of(line, TextStyle::Strong),
            front,
            &rest,
            columns,
        ));
    }
    let more = text.lines().count().saturating_sub(shown.len());
    if more > 0 {
        rows.push(
            StyledLine::of(
                format!("  {}", text!("app-more-lines", more)),
                TextStyle::Dim,
            )
            .cut(columns),
        );
    }
    rows
}

/// Lines of what the user said that are printed again.
const SAID_ROWS: usize = 12;
