//! Draws a list to choose from, in place of the input, until a row is chosen or Esc is pressed.
//!
//! The caller sets the action of each row, so one type serves conversations, messages, models and
//! confirmations. Invariant: the list never exceeds the rows it is given, and the selected row is
//! always visible.

use std::borrow::Cow;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use haft_types::PermissionMode;

use crate::line::{StyledLine, TextStyle};
use crate::link::Operation;
use crate::wrap::{wrap_hanging, wrap_line};

/// A list from which the user chooses. Its texts may be untrusted, because they are sanitized when
/// the list is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PickerList {
    /// The title above the list.
    pub title: String,
    /// The notes above the rows.
    pub notes: Vec<String>,
    /// The rows to choose from, in order.
    pub rows: Vec<PickerRow>,
    /// The text that the filter contains when the list is opened.
    pub filter: String,
    /// The index of the row that is selected when the list is opened.
    pub selected: usize,
    /// True if the list asks a question. Its rows are numbered, and a number selects a row. Keys
    /// that are pressed before the question could be read choose nothing. Other text closes the list
    /// and goes to the input: a filter would let "n" select the row "edit without asking".
    pub is_question: bool,
}

impl PickerList {
    /// Returns true if the list does not depend on the end of a turn: it asks about leaving, or
    /// about an action outside the conversation.
    pub(crate) fn outlives_turns(&self) -> bool {
        self.rows.iter().any(|row| {
            matches!(
                row.then,
                PickerAction::Quit | PickerAction::Do(Operation::Side(_))
            )
        })
    }
}

/// A row of a list, which the user can choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PickerRow {
    /// The text of the row.
    pub text: String,
    /// A short description, shown after the text.
    pub about: String,
    /// The action that is carried out when the row is chosen.
    pub then: PickerAction,
}

/// The action that is carried out when a row is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickerAction {
    /// Send an operation to the session.
    Do(Operation),
    /// Open another list. Esc returns to this list.
    Open(Box<PickerList>),
    /// Put text into the input.
    Type(String),
    /// Print text.
    Tell(String),
    /// Send a prompt.
    Send(String),
    /// Set the permission mode, and then send the prompt, if there is one.
    Mode {
        /// The permission mode to set.
        mode: PermissionMode,
        /// The prompt to send after the mode is set; `None` to send nothing.
        prompt: Option<String>,
    },
    /// Leave the interface.
    Quit,
    /// Close the list without any other effect.
    Leave,
}

/// The open lists. The last list is in front and receives the keys.
#[derive(Debug)]
pub(crate) struct Picker {
    open: Vec<OpenList>,
    /// True once the list accepts keys that choose a row.
    armed: bool,
}

#[derive(Debug)]
struct OpenList {
    list: PickerList,
    filter: String,
    /// The index of the selected row among the rows that match the filter.
    chosen: usize,
}

/// The effect that a key had on the picker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PickerOutcome {
    /// The picker stays open.
    Stay,
    /// The picker was closed without a choice.
    Closed,
    /// The picker was closed by choosing this action.
    Chosen(PickerAction),
}

/// The maximum number of rows of a list's title, which may be the text of a message.
const TITLE_ROWS: usize = 2;
/// The number of rows by which a page key moves the selection.
const PAGE_ROWS: usize = 8;

impl Picker {
    pub(crate) fn new(list: PickerList) -> Self {
        Self {
            armed: !list.is_question,
            open: vec![OpenList::new(list)],
        }
    }

    pub(crate) fn arm(&mut self) {
        self.armed = true;
    }

    /// Returns true if the list in front asks a question.
    pub(crate) fn is_question(&self) -> bool {
        self.open.last().is_some_and(|front| front.list.is_question)
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.armed
    }

    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> PickerOutcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(front) = self.open.last_mut() else {
            return PickerOutcome::Closed;
        };
        match key.code {
            KeyCode::Char('c' | 'g') if control => return PickerOutcome::Closed,
            KeyCode::Esc => {
                self.open.pop();
                self.armed = true;
                return if self.open.is_empty() {
                    PickerOutcome::Closed
                } else {
                    PickerOutcome::Stay
                };
            }
            KeyCode::Enter if !self.armed => {}
            KeyCode::Enter => {
                return match front.selected_row().map(|row| row.then.clone()) {
                    None => PickerOutcome::Stay,
                    Some(PickerAction::Leave) => PickerOutcome::Closed,
                    Some(PickerAction::Open(list)) => {
                        self.armed = !list.is_question;
                        self.open.push(OpenList::new(*list));
                        PickerOutcome::Stay
                    }
                    Some(then) => PickerOutcome::Chosen(then),
                };
            }
            KeyCode::Up => front.move_up(1),
            KeyCode::Down => front.move_down(1),
            KeyCode::Char('p') if control => front.move_up(1),
            KeyCode::Char('n') if control => front.move_down(1),
            KeyCode::PageUp => front.move_up(PAGE_ROWS),
            KeyCode::PageDown => front.move_down(PAGE_ROWS),
            KeyCode::Home => front.chosen = 0,
            KeyCode::End => front.move_down(usize::MAX),
            KeyCode::Char('u') if control => front.edit_filter(String::clear),
            KeyCode::Backspace => front.edit_filter(|filter| {
                filter.pop();
            }),
            KeyCode::Char(c) if !control => front.edit_filter(|filter| filter.push(c)),
            _ => {}
        }
        if front.list.is_question && !front.filter.is_empty() && front.typed_row().is_none() {
            return PickerOutcome::Chosen(PickerAction::Type(std::mem::take(&mut front.filter)));
        }
        PickerOutcome::Stay
    }

    /// Appends pasted text to the filter.
    pub(crate) fn paste_into_filter(&mut self, text: &str) {
        if let Some(front) = self.open.last_mut() {
            front.edit_filter(|filter| filter.push_str(text.lines().next().unwrap_or_default()));
        }
    }

    /// Draws the list in front in at most `at_most` rows. Also returns the row and column of the
    /// cursor.
    pub(crate) fn draw_lists(
        &self,
        columns: usize,
        at_most: usize,
    ) -> (Vec<StyledLine>, (usize, usize)) {
        self.open
            .last()
            .map(|front| front.draw_list(columns, at_most, self.armed))
            .unwrap_or_default()
    }
}

impl OpenList {
    fn new(list: PickerList) -> Self {
        let filter = list.filter.clone();
        let chosen = list.selected;
        Self {
            list,
            filter,
            chosen,
        }
    }

    /// Returns the index of the row whose number is typed, if the list asks a question.
    fn typed_row(&self) -> Option<usize> {
        let number: usize = self.filter.trim().parse().ok()?;
        let row = number.checked_sub(1)?;
        (self.list.is_question && row < self.list.rows.len()).then_some(row)
    }

    /// Returns the rows of this list that contain every word of the filter, with their numbers. In a
    /// question, a typed number selects a row, and no row is hidden.
    fn matching_rows(&self) -> Vec<(usize, &PickerRow)> {
        let numbered = self.list.rows.iter().enumerate();
        if self.list.is_question {
            return numbered.map(|(at, row)| (at + 1, row)).collect();
        }
        let words: Vec<_> = self
            .filter
            .split_whitespace()
            .map(str::to_lowercase)
            .collect();
        numbered
            .filter(|(_, row)| {
                let whole = format!("{} {}", row.text, row.about).to_lowercase();
                words.iter().all(|word| whole.contains(word))
            })
            .map(|(at, row)| (at + 1, row))
            .collect()
    }

    fn selected_row(&self) -> Option<&PickerRow> {
        self.matching_rows().get(self.chosen).map(|(_, row)| *row)
    }

    fn move_up(&mut self, by: usize) {
        self.chosen = self.chosen.saturating_sub(by);
    }

    fn move_down(&mut self, by: usize) {
        let last = self.matching_rows().len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add(by).min(last);
    }

    fn edit_filter(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.filter);
        self.chosen = self.typed_row().unwrap_or(0);
    }

    /// Returns a row as it is drawn: the rows of a question begin with their numbers.
    fn numbered_row<'a>(&self, number: usize, row: &'a PickerRow) -> Cow<'a, PickerRow> {
        if self.list.is_question {
            Cow::Owned(PickerRow {
                text: format!("{number} {}", row.text),
                ..row.clone()
            })
        } else {
            Cow::Borrowed(row)
        }
    }

    fn draw_list(
        &self,
        columns: usize,
        at_most: usize,
        armed: bool,
    ) -> (Vec<StyledLine>, (usize, usize)) {
        let mut rows = wrap_line(
            &StyledLine::new(&self.list.title, TextStyle::Strong),
            columns,
        );
        if rows.len() > TITLE_ROWS || at_most < 2 * TITLE_ROWS + 3 {
            rows = vec![StyledLine::new(&self.list.title, TextStyle::Strong).cut(columns)];
        }
        let notes = self
            .list
            .notes
            .iter()
            .flat_map(|note| wrap_line(&StyledLine::new(note, TextStyle::Dim), columns));
        // The number leaves room for the title, the filter, one row and the keys, which are always
        // visible.
        rows.extend(notes.take(at_most.saturating_sub(rows.len() + 4)));
        let typed = StyledLine::new("> ", TextStyle::Accent)
            .with_text(&self.filter, TextStyle::Plain)
            .cut(columns);
        let cursor = (rows.len(), typed.width().min(columns.saturating_sub(1)));
        rows.push(typed);
        let fitting: Vec<_> = self
            .matching_rows()
            .into_iter()
            .map(|(number, row)| self.numbered_row(number, row))
            .collect();
        let room = at_most.saturating_sub(rows.len() + 1).max(1);
        let first = self.chosen.saturating_sub(room - 1);
        let shown: Vec<_> = fitting.iter().enumerate().skip(first).take(room).collect();
        let layout = Layout::for_rows(&shown.iter().map(|(_, row)| row.as_ref()), columns);
        // A row is marked only if Enter would choose it now.
        let is_marked = |at: usize| armed && at == self.chosen;
        let whole: Vec<_> = shown
            .iter()
            .flat_map(|(at, row)| draw_whole_row(row, is_marked(*at), columns))
            .collect();
        // The answers to a question are shown whole if there is room for the rows of all of them.
        let is_cut = whole.len() > shown.len();
        if self.list.is_question && is_cut && shown.len() == fitting.len() && whole.len() <= room {
            rows.extend(whole);
        } else {
            rows.extend(
                shown
                    .iter()
                    .map(|(at, row)| layout.draw_row(row, is_marked(*at))),
            );
        }
        if fitting.is_empty() {
            rows.push(
                StyledLine::new(format!("  {}", text!("app-picker-empty")), TextStyle::Dim)
                    .cut(columns),
            );
        }
        let keys = if self.list.is_question {
            text!("app-picker-question-keys")
        } else {
            text!("app-picker-keys")
        };
        let keys = if fitting.len() > shown.len() {
            text!(
                "app-picker-place",
                at = self.chosen + 1,
                count = fitting.len(),
                keys
            )
        } else {
            keys.to_owned()
        };
        let mut keys = StyledLine::new(keys, TextStyle::Dim);
        if keys.width() > columns {
            keys = StyledLine::new(text!("app-picker-keys"), TextStyle::Dim);
        }
        rows.push(keys.cut(columns));
        rows.truncate(at_most.max(1));
        (rows, cursor)
    }
}

/// Draws the answer to a question in as many rows as it needs, indented behind its number.
fn draw_whole_row(row: &PickerRow, is_marked: bool, columns: usize) -> Vec<StyledLine> {
    let (mark, style) = row_mark(is_marked);
    let mut line = StyledLine::new(&row.text, style);
    if !row.about.is_empty() {
        line = line.with_text(format!("  {}", row.about), TextStyle::Dim);
    }
    // The line differs from the text of the row: it is sanitized.
    let number = line.plain().find(' ').map_or(0, |end| end + 1);
    let indent = " ".repeat(haft_text::display_width(mark) + number);
    let (number, text) = line.split_at(number);
    wrap_hanging(
        &text,
        &StyledLine::new(mark, style).joined_with(&number),
        &StyledLine::new(indent, TextStyle::Plain),
        columns,
    )
}

/// Returns the mark before a row, and the style of the row.
fn row_mark(is_marked: bool) -> (&'static str, TextStyle) {
    if is_marked {
        ("▸ ", TextStyle::Accent)
    } else {
        ("  ", TextStyle::Plain)
    }
}

/// The widths of the two columns of a list.
struct Layout {
    columns: usize,
    /// The width of the text column. Longer text is cut.
    text: usize,
}

impl Layout {
    fn for_rows<'a>(rows: &(impl Iterator<Item = &'a PickerRow> + Clone), columns: usize) -> Self {
        let widest = |text: fn(&PickerRow) -> &str| {
            rows.clone()
                .map(|row| StyledLine::new(text(row), TextStyle::Plain).width())
                .max()
                .unwrap_or_default()
        };
        let room = columns.saturating_sub(2);
        // The text matters more than the description, but some room is left for the description.
        let about = widest(|row| &row.about).min(room * 9 / 20);
        let beside = if about == 0 { 0 } else { about + 2 };
        Self {
            columns,
            text: widest(|row| &row.text).min(room.saturating_sub(beside)),
        }
    }

    fn draw_row(&self, row: &PickerRow, chosen: bool) -> StyledLine {
        let (mark, style) = row_mark(chosen);
        let text = StyledLine::new(&row.text, style).cut(self.text);
        let blank = " ".repeat(self.text.saturating_sub(text.width()) + 2);
        let front = StyledLine::new(mark, style);
        let line: StyledLine = front.spans().iter().chain(text.spans()).cloned().collect();
        if row.about.is_empty() {
            line
        } else {
            line.with_text(blank, TextStyle::Plain)
                .with_text(&row.about, TextStyle::Dim)
        }
        .cut(self.columns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(text: &str, about: &str) -> PickerRow {
        PickerRow {
            text: text.into(),
            about: about.into(),
            then: PickerAction::Type(text.into()),
        }
    }

    fn picker(rows: &[(&str, &str)]) -> Picker {
        let rows = rows.iter().map(|(text, about)| row(text, about)).collect();
        Picker::new(PickerList {
            title: "Which one?".into(),
            rows,
            ..PickerList::default()
        })
    }

    fn press(picker: &mut Picker, code: KeyCode) -> PickerOutcome {
        picker.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn drawn_text(picker: &Picker, columns: usize, rows: usize) -> String {
        picker
            .draw_lists(columns, rows)
            .0
            .iter()
            .map(|row| row.plain() + "\n")
            .collect()
    }

    #[test]
    fn picker_filters_and_enter_chooses() {
        let mut picker = picker(&[
            ("fix the bug", "2 h ago"),
            ("write the page", "1 d ago"),
            ("fix the page", "3 d ago"),
        ]);
        "page fix"
            .chars()
            .for_each(|c| drop(press(&mut picker, KeyCode::Char(c))));
        assert_eq!(
            press(&mut picker, KeyCode::Enter),
            PickerOutcome::Chosen(PickerAction::Type("fix the page".into()))
        );
        "zzz"
            .chars()
            .for_each(|c| drop(press(&mut picker, KeyCode::Char(c))));
        assert_eq!(
            press(&mut picker, KeyCode::Enter),
            PickerOutcome::Stay,
            "there is nothing to take"
        );
        assert!(drawn_text(&picker, 40, 9).contains("No match"));
    }

    #[test]
    fn picker_shows_long_answers_whole() {
        let answers = [
            "Refuse them",
            "Replace them by a random password, which users change",
        ];
        let picker = Picker::new(PickerList {
            title: "Your answer".into(),
            rows: answers.map(|answer| row(answer, "")).into(),
            is_question: true,
            ..PickerList::default()
        });
        assert_eq!(
            drawn_text(&picker, 40, 20),
            "Your answer\n> \n  1 Refuse them\n  2 Replace them by a random password,\n    which users change\nEnter to select, Esc to cancel\n"
        );
        assert_eq!(
            drawn_text(&picker, 40, 5),
            "Your answer\n> \n  1 Refuse them\n  2 Replace them by a random password, …\nEnter to select, Esc to cancel\n"
        );
    }

    #[test]
    fn picker_returns_from_a_nested_list() {
        let inner = PickerList {
            title: "How?".into(),
            rows: vec![row("so", "")],
            ..PickerList::default()
        };
        let rows = vec![PickerRow {
            then: PickerAction::Open(Box::new(inner)),
            ..row("one", "")
        }];
        let mut picker = Picker::new(PickerList {
            title: "Which?".into(),
            rows,
            ..PickerList::default()
        });
        assert_eq!(press(&mut picker, KeyCode::Enter), PickerOutcome::Stay);
        assert!(drawn_text(&picker, 40, 9).starts_with("How?"));
        assert_eq!(press(&mut picker, KeyCode::Esc), PickerOutcome::Stay);
        assert!(drawn_text(&picker, 40, 9).starts_with("Which?"));
        assert_eq!(press(&mut picker, KeyCode::Esc), PickerOutcome::Closed);
    }

    #[test]
    fn picker_view_narrow_and_wide() {
        let mut picker = picker(&[
            (
                "a conversation with a very long name indeed",
                "2 h ago, 14 messages",
            ),
            ("日本語の会話", "3 d ago, 2 messages"),
            ("third", "4 d ago, 6 messages"),
        ]);
        press(&mut picker, KeyCode::Down);
        insta::assert_snapshot!(format!(
            "{}\n{}",
            drawn_text(&picker, 40, 5),
            drawn_text(&picker, 80, 10)
        ));
    }

    proptest! {
        #[test]
        fn picker_fits_and_shows_the_selection(count in 0usize..30, down in 0usize..40, columns in 16usize..90, rows in 4usize..20) {
            let names: Vec<_> = (0..count).map(|number| format!("row {number} 日本\u{1b}[2J")).collect();
            let rows_of: Vec<_> = names.iter().map(|name| (name.as_str(), "about it")).collect();
            let mut picker = picker(&rows_of);
            for _ in 0..down {
                press(&mut picker, KeyCode::Down);
            }
            let (drawn, cursor) = picker.draw_lists(columns, rows);
            prop_assert!(drawn.len() <= rows && drawn.iter().all(|row| row.width() <= columns));
            prop_assert!(cursor.0 < drawn.len() && cursor.1 < columns);
            prop_assert_eq!(drawn.iter().filter(|row| row.plain().starts_with('▸')).count(), usize::from(count > 0));
        }
    }
}
