//! The multi-line editor of the input line.
//!
//! Responsible for text, cursor, cut text, long pastes and history. Invariant: the cursor is on a
//! grapheme boundary. A long paste is one character of the text and is expanded when the text is
//! taken.

mod shell_keys;
mod vim;

use std::ops::Range;

use crossterm::event::KeyEvent;
use haft_text::{display_width, reveal_controls, sanitize};
use unicode_segmentation::UnicodeSegmentation;

use crate::line::{StyledLine, TextStyle};
use crate::wrap::MIN_COLUMNS;

use vim::Vim;

/// The maximum number of lines of a paste that is shown in full. A longer paste is shown as one
/// word.
const MAX_SHOWN_LINES: usize = 8;
const MAX_SHOWN_BYTES: usize = 1_000;
/// The characters that stand for pastes, from a private-use area. Users can't type these
/// characters.
const PASTE_CHARS: std::ops::RangeInclusive<char> = '\u{f0000}'..='\u{f0fff}';
const MAX_HISTORY: usize = 500;
/// The maximum number of submitted inputs whose long pastes are shown as one word when they are
/// recalled.
const MAX_FOLDED: usize = 20;
/// The maximum number of lines of an input of an earlier session that is recalled in full. It is not
/// known which part of it was pasted.
const MAX_RECALLED_LINES: usize = 40;

/// The input editor: the text that is being typed, with its cursor, its pastes and the history.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    cursor: usize,
    pastes: Vec<String>,
    cut: String,
    history: Vec<String>,
    /// The submitted inputs with long pastes: the text in full, and the text and its pastes.
    folded: Vec<(String, String, Vec<String>)>,
    /// The position in the history, and the unfinished text to restore when the user leaves the
    /// history.
    recalled: Option<(usize, String)>,
    /// The state of Vim mode; `None` with shell bindings.
    vim: Option<Vim>,
}

/// The rows of the editor as drawn, and the position of the cursor in them.
pub(crate) struct EditorView {
    pub(crate) rows: Vec<StyledLine>,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

impl Editor {
    pub(crate) fn with_history(history: Vec<String>) -> Self {
        Self {
            history,
            ..Self::default()
        }
    }

    /// Switches to Vim bindings.
    pub(crate) fn enable_vim(&mut self) {
        self.vim = Some(Vim::default());
    }

    /// Returns the name of Vim's mode, or `None` with shell bindings.
    pub(crate) fn vim_mode(&self) -> Option<&'static str> {
        self.vim.as_ref().map(Vim::mode_name)
    }

    /// Handles a key in Vim mode. Returns false if Vim mode is off or the key isn't bound in Vim
    /// mode.
    pub(crate) fn handle_vim_key(&mut self, key: KeyEvent) -> bool {
        let Some(mut vim) = self.vim.take() else {
            return false;
        };
        let taken = vim.handle_key(self, key);
        self.vim = Some(vim);
        taken
    }

    /// Returns the text, in which each long paste is a single placeholder character.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text with each long paste in full.
    pub(crate) fn full_text(&self) -> String {
        self.text.chars().map(|c| self.expand_paste(c)).collect()
    }

    /// Removes the text, adds it to the history, and returns it with each long paste in full.
    pub(crate) fn take_text(&mut self) -> String {
        let text = self.full_text();
        if !self.pastes.is_empty() {
            let folded = (text.clone(), self.text.clone(), self.pastes.clone());
            self.folded.push(folded);
            let extra = self.folded.len().saturating_sub(MAX_FOLDED);
            self.folded.drain(..extra);
        }
        self.clear();
        self.vim.iter_mut().for_each(Vim::reset);
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
            let extra = self.history.len().saturating_sub(MAX_HISTORY);
            self.history.drain(..extra);
        }
        text
    }

    fn expand_paste(&self, c: char) -> String {
        self.paste_content(c)
            .map_or_else(|| c.to_string(), str::to_owned)
    }

    fn paste_content(&self, c: char) -> Option<&str> {
        let number = PASTE_CHARS
            .contains(&c)
            .then(|| c as usize - *PASTE_CHARS.start() as usize)?;
        self.pastes.get(number).map(String::as_str)
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.pastes.clear();
        (self.cursor, self.recalled) = (0, None);
    }

    /// Replaces the whole text, and moves the cursor to its end.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.clear();
        self.insert(text);
    }

    /// Enters Vim's insert mode, so that the next letters are inserted instead of running commands.
    pub(crate) fn enter_insert_mode(&mut self) {
        self.vim.iter_mut().for_each(Vim::reset);
    }

    /// Inserts text at the cursor.
    pub(crate) fn insert(&mut self, text: &str) {
        let text: String = text.chars().filter(|c| !PASTE_CHARS.contains(c)).collect();
        self.insert_raw(&text);
    }

    fn insert_raw(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // A combining mark may have joined the character after it.
        self.cursor = self.boundary_at_or_after(self.cursor);
    }

    /// Inserts pasted text. A long paste is shown as one word.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text = sanitize(&text);
        let long = text.len() > MAX_SHOWN_BYTES || text.lines().count() > MAX_SHOWN_LINES;
        let number = u32::from(*PASTE_CHARS.start()) + self.pastes.len() as u32;
        match char::from_u32(number).filter(|c| long && PASTE_CHARS.contains(c)) {
            Some(c) => {
                self.pastes
                    .push(text.chars().filter(|c| !PASTE_CHARS.contains(c)).collect());
                self.insert_raw(&c.to_string());
            }
            None => self.insert(&text),
        }
    }

    pub(crate) fn backspace(&mut self) {
        let from = self.previous_boundary(self.cursor);
        self.remove_range(from, self.cursor);
    }

    pub(crate) fn delete(&mut self) {
        let to = self.next_boundary(self.cursor);
        self.remove_range(self.cursor, to);
    }

    pub(crate) fn move_left(&mut self) {
        self.cursor = self.previous_boundary(self.cursor);
    }

    pub(crate) fn move_right(&mut self) {
        self.cursor = self.next_boundary(self.cursor);
    }

    pub(crate) fn move_word_left(&mut self) {
        self.cursor = self.previous_word_start();
    }

    pub(crate) fn move_word_right(&mut self) {
        let rest = &self.text[self.cursor..];
        let blank = rest.len() - rest.trim_start().len();
        let word = rest[blank..]
            .find(char::is_whitespace)
            .unwrap_or(rest.len() - blank);
        self.cursor += blank + word;
    }

    pub(crate) fn move_to_line_start(&mut self) {
        self.cursor = self.line_start();
    }

    pub(crate) fn move_to_line_end(&mut self) {
        self.cursor = self.line_end();
    }

    pub(crate) fn cut_to_end(&mut self) {
        let end = self.line_end();
        // At the end of a line, the line break is cut.
        let to = if end == self.cursor {
            self.next_boundary(end)
        } else {
            end
        };
        self.cut_range(self.cursor, to);
    }

    pub(crate) fn cut_to_start(&mut self) {
        self.cut_range(self.line_start(), self.cursor);
    }

    pub(crate) fn cut_word(&mut self) {
        self.cut_range(self.previous_word_start(), self.cursor);
    }

    pub(crate) fn paste_cut(&mut self) {
        let cut = self.cut.clone();
        self.insert_raw(&cut);
    }

    /// Returns the number of history entries that call a slash command.
    pub(crate) fn count_uses(&self, command: &str) -> usize {
        let called = |text: &&String| {
            text.strip_prefix('/')
                .and_then(|text| text.split_whitespace().next())
                == Some(command)
        };
        self.history.iter().filter(called).count()
    }

    /// Moves up a line; on the first line, goes back in the history.
    pub(crate) fn move_up(&mut self) {
        let start = self.line_start();
        if start == 0 {
            return self.recall_older();
        }
        let column = self.text[start..self.cursor].graphemes(true).count();
        let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = self.index_at_column(above, start - 1, column);
    }

    /// Moves down a line; on the last line, goes forward in the history.
    pub(crate) fn move_down(&mut self) {
        let end = self.line_end();
        if end == self.text.len() {
            return self.recall_newer();
        }
        let column = self.text[self.line_start()..self.cursor]
            .graphemes(true)
            .count();
        let below = end + 1;
        let until = self.text[below..]
            .find('\n')
            .map_or(self.text.len(), |at| below + at);
        self.cursor = self.index_at_column(below, until, column);
    }

    /// Returns the newest history entry that contains `query`, not counting the `skip` newest
    /// matches.
    pub(crate) fn search_history(&self, query: &str, skip: usize) -> Option<&str> {
        self.history
            .iter()
            .rev()
            .filter(|text| text.contains(query))
            .nth(skip)
            .map(String::as_str)
    }

    /// Returns the beginning of the word at the cursor, up to the cursor.
    pub(crate) fn word_before_cursor(&self) -> &str {
        let before = &self.text[..self.cursor];
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| self.next_boundary(at));
        let word = &before[start.min(before.len())..];
        // Chinese has no spaces: a mention may follow directly, and so it may after a bracket.
        // `a@b` and `x/@y` are one word.
        let begins = |at: &usize| {
            word[..*at].ends_with(|c: char| !c.is_ascii() || "([{<\"'`,;:=".contains(c))
        };
        let mention = word.match_indices('@').map(|(at, _)| at).rfind(begins);
        mention.map_or(word, |at| &word[at..])
    }

    /// Replaces the word before the cursor.
    pub(crate) fn replace_word(&mut self, with: &str) {
        let from = self.cursor - self.word_before_cursor().len();
        self.remove_range(from, self.cursor);
        self.insert(with);
    }

    /// Lays out the text, wrapped between words if possible, and returns at most `at_most` rows
    /// around the cursor.
    pub(crate) fn layout_rows(&self, prompt: &str, columns: usize, at_most: usize) -> EditorView {
        let front = display_width(prompt);
        let room = columns.saturating_sub(front + 1).max(MIN_COLUMNS);
        let cells: Vec<_> = self
            .text
            .grapheme_indices(true)
            .map(|(at, piece)| (at, self.drawn_text(piece)))
            .collect();
        let rows = break_into_rows(&cells, room);
        let cursor = cells
            .iter()
            .position(|cell| cell.0 >= self.cursor)
            .unwrap_or(cells.len());
        let row = rows
            .iter()
            .rposition(|row| row.start <= cursor)
            .unwrap_or(0);
        let column = cells[rows[row].start..cursor.min(rows[row].end)]
            .iter()
            .map(|cell| display_width(&cell.1))
            .sum::<usize>();
        let first = row.saturating_sub(at_most.max(1) - 1);
        let line = |(number, row): (usize, &Range<usize>)| {
            let front_text = if number == 0 {
                prompt.to_owned()
            } else {
                " ".repeat(front)
            };
            let text: String = cells[row.clone()]
                .iter()
                .map(|cell| cell.1.as_str())
                .collect();
            StyledLine::new(front_text, TextStyle::Accent)
                .with_text(text, TextStyle::Plain)
                .cut(columns)
        };
        let rows = rows
            .iter()
            .enumerate()
            .skip(first)
            .take(at_most.max(1))
            .map(line)
            .collect();
        EditorView {
            rows,
            row: row - first,
            column: front + column.min(room),
        }
    }

    fn drawn_text(&self, piece: &str) -> String {
        let Some(c) = piece.chars().next() else {
            return String::new();
        };
        match self.paste_content(c) {
            Some(paste) => match paste.lines().count() {
                0 | 1 => text!("app-pasted-characters", count = paste.chars().count()),
                lines => text!("app-pasted-lines", lines),
            },
            None if c == '\n' => "\n".to_owned(),
            // A command that is edited before it runs may contain control characters. The width
            // must be that of the sanitized text that is drawn.
            None => StyledLine::new(reveal_controls(piece), TextStyle::Plain).plain(),
        }
    }

    fn recall_older(&mut self) {
        let at = self
            .recalled
            .as_ref()
            .map_or(self.history.len(), |(at, _)| *at);
        let Some(older) = at.checked_sub(1) else {
            return;
        };
        self.recall_entry(older);
    }

    fn recall_newer(&mut self) {
        let Some((at, draft)) = self.recalled.take() else {
            return;
        };
        if at + 1 < self.history.len() {
            self.recalled = Some((at, draft));
            self.recall_entry(at + 1);
        } else {
            self.set_text(&draft);
        }
    }

    fn recall_entry(&mut self, at: usize) {
        // A draft is restored with its pastes in full.
        let draft = match self.recalled.take() {
            Some((_, draft)) => draft,
            None => self.full_text(),
        };
        let text = self.history[at].clone();
        self.clear();
        if let Some((_, short, pastes)) = self.folded.iter().find(|(full, ..)| *full == text) {
            (self.text, self.pastes) = (short.clone(), pastes.clone());
            self.cursor = self.text.len();
        } else if text.lines().count() > MAX_RECALLED_LINES {
            self.paste(&text);
        } else {
            self.insert(&text);
        }
        self.recalled = Some((at, draft));
    }

    fn remove_range(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = self.boundary_at_or_after(from);
    }

    fn cut_range(&mut self, from: usize, to: usize) {
        if from < to {
            self.text[from..to].clone_into(&mut self.cut);
            self.remove_range(from, to);
        }
    }

    fn previous_boundary(&self, at: usize) -> usize {
        self.text[..at]
            .grapheme_indices(true)
            .next_back()
            .map_or(0, |(from, _)| from)
    }

    fn next_boundary(&self, at: usize) -> usize {
        at + self.text[at..].graphemes(true).next().map_or(0, str::len)
    }

    /// Returns the first grapheme boundary at or after `at`.
    fn boundary_at_or_after(&self, at: usize) -> usize {
        let starts = self.text.grapheme_indices(true).map(|(start, _)| start);
        starts
            .chain([self.text.len()])
            .find(|start| *start >= at)
            .unwrap_or(self.text.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..]
            .find('\n')
            .map_or(self.text.len(), |at| self.cursor + at)
    }

    fn previous_word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before
            .rfind(char::is_whitespace)
            .map_or(0, |at| self.next_boundary(at))
    }

    fn index_at_column(&self, from: usize, to: usize, column: usize) -> usize {
        let line = &self.text[from..to];
        line.grapheme_indices(true)
            .nth(column)
            .map_or(to, |(at, _)| from + at)
    }
}

/// Returns the range of cells that each row shows. The ranges exclude line breaks.
fn break_into_rows(cells: &[(usize, String)], room: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let mut start = 0;
    let mut used = 0;
    // The cell after the last space of the row.
    let mut chance = None;
    for (at, (_, text)) in cells.iter().enumerate() {
        if text == "\n" {
            rows.push(start..at);
            (start, used, chance) = (at + 1, 0, None);
            continue;
        }
        let wide = display_width(text);
        // A space fits into the last column, which is reserved for the cursor.
        let fits = used + wide <= room || text == " " && used == room;
        if !fits && at > start {
            let end = chance.take().filter(|_| text != " ").unwrap_or(at);
            rows.push(start..end);
            start = end;
            used = cells[start..at]
                .iter()
                .map(|cell| display_width(&cell.1))
                .sum();
        }
        used += wide;
        if text == " " {
            chance = Some(at + 1);
        }
    }
    rows.push(start..cells.len());
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn editor_with_text(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn editor_handles_chinese_by_grapheme() {
        for input in include_str!("../../../testkit/fixtures/chinese_inputs.txt").lines() {
            // An input method sends a word at once, a paste everything.
            let mut editor = Editor::default();
            let middle = input
                .grapheme_indices(true)
                .nth(input.graphemes(true).count() / 2)
                .map_or(0, |(at, _)| at);
            editor.insert(&input[..middle]);
            editor.insert(&input[middle..]);
            assert_eq!(editor.text(), editor_with_text(input).text());
            let whole = editor.text().to_owned();
            for columns in [12, 40, 80, 200] {
                let view = editor.layout_rows("> ", columns, usize::MAX);
                assert!(
                    view.rows.iter().all(|row| row.width() <= columns),
                    "{input} at {columns}"
                );
            }
            let seen = whole.graphemes(true).count();
            for _ in 0..seen {
                editor.backspace();
            }
            assert_eq!(editor.text(), "", "{input}");
        }
    }

    #[test]
    fn mention_may_follow_chinese_without_space() {
        for (text, word) in [
            ("看看@src/ma", "@src/ma"),
            ("对比@a.rs和@b", "@b"),
            ("（见@主", "@主"),
            ("看 @node_modules/@types/x", "@node_modules/@types/x"),
            ("call(@x", "@x"),
            ("mail a@b.c", "a@b.c"),
            ("张三@example", "@example"),
            ("plain", "plain"),
            ("/hel", "/hel"),
        ] {
            assert_eq!(editor_with_text(text).word_before_cursor(), word, "{text}");
        }
        let mut editor = editor_with_text("对比@a.rs和@b");
        editor.replace_word("@lib.rs ");
        assert_eq!(editor.text(), "对比@a.rs和@lib.rs ");
    }

    #[test]
    fn editor_deletes_whole_graphemes() {
        let mut editor = editor_with_text("ae\u{301}👨‍👩‍👧");
        editor.backspace();
        assert_eq!(editor.text(), "ae\u{301}");
        editor.move_left();
        editor.delete();
        assert_eq!(editor.text(), "a");
    }

    #[test]
    fn long_paste_is_one_character_and_expands() {
        let lines = "line of the paste\r\n".repeat(5_000);
        let mut editor = editor_with_text("before ");
        editor.paste(&lines);
        editor.insert(" after");
        let view = editor.layout_rows("> ", 60, 5);
        assert_eq!(view.rows[0].plain(), "> before [pasted 5,000 lines] after");
        assert_eq!(
            editor.take_text(),
            format!("before {} after", lines.replace("\r\n", "\n"))
        );
        editor.paste(&lines);
        editor.backspace();
        assert!(editor.is_empty());
    }

    #[test]
    fn recalled_input_keeps_its_pastes_folded() {
        let mut editor = editor_with_text("look: ");
        editor.paste(&"line\n".repeat(50));
        let shown = editor.text().to_owned();
        let full = editor.take_text();
        editor.move_up();
        assert_eq!(editor.text(), shown);
        assert_eq!(editor.full_text(), full);
        let mut later = Editor::with_history(vec![full.clone()]);
        later.move_up();
        assert_eq!(later.text().chars().count(), 1);
        assert_eq!(later.full_text(), full);
    }

    #[test]
    fn paste_contains_no_control_characters() {
        let mut editor = editor_with_text("");
        editor.paste("a\u{1b}[201~\u{3}b\rc\u{f0000}");
        assert!(
            !editor
                .text()
                .contains(['\u{1b}', '\u{3}', '\r', '\u{f0000}']),
            "{:?}",
            editor.text()
        );
    }

    #[test]
    fn history_keeps_the_draft() {
        let mut editor = editor_with_text("one");
        editor.take_text();
        editor.insert("two\nlines");
        editor.take_text();
        editor.insert("draft");
        editor.move_up();
        assert_eq!(editor.text(), "two\nlines");
        editor.move_up();
        assert_eq!(
            (editor.text(), editor.cursor()),
            ("two\nlines", 3),
            "first through its rows"
        );
        editor.move_up();
        assert_eq!(editor.text(), "one");
        editor.move_up();
        assert_eq!(editor.text(), "one");
        editor.move_down();
        assert_eq!(editor.text(), "two\nlines");
        editor.move_down();
        assert_eq!(editor.text(), "draft");
        assert_eq!(editor.search_history("o", 1), Some("one"));
    }

    #[test]
    fn cut_text_can_be_pasted() {
        let mut editor = editor_with_text("git commit -m");
        editor.cut_word();
        assert_eq!(editor.text(), "git commit ");
        editor.move_to_line_start();
        editor.paste_cut();
        assert_eq!(editor.text(), "-mgit commit ");
        editor.cut_to_end();
        assert_eq!(editor.text(), "-m");
    }

    #[test]
    fn editor_view_places_the_cursor() {
        let mut editor = editor_with_text("日本語 text that is long\nsecond");
        let view = editor.layout_rows("> ", 14, 9);
        assert_eq!(
            view.rows.iter().map(StyledLine::plain).collect::<Vec<_>>(),
            ["> 日本語 text ", "  that is ", "  long", "  second"]
        );
        assert_eq!((view.row, view.column), (3, 8));
        editor.move_up();
        editor.move_to_line_start();
        editor.move_right();
        let view = editor.layout_rows("> ", 14, 2);
        assert_eq!((view.rows.len(), view.row, view.column), (2, 0, 4));
        let rows: Vec<_> = editor_with_text("abcdefghijklmnop qr")
            .layout_rows("> ", 14, 9)
            .rows
            .iter()
            .map(StyledLine::plain)
            .collect();
        assert_eq!(
            rows,
            ["> abcdefghijk", "  lmnop qr"],
            "a word that is too long is broken"
        );
    }

    proptest! {
        #[test]
        fn editor_keeps_the_cursor_on_a_boundary(keys in prop::collection::vec((0u8..18, "\\PC{0,4}|\n|\u{301}|日"), 0..60), columns in 1usize..40) {
            let mut editor = Editor::default();
            for (key, text) in keys {
                match key {
                    0..=5 => editor.insert(&text),
                    6 => editor.backspace(),
                    7 => editor.delete(),
                    8 => editor.move_left(),
                    9 => editor.move_right(),
                    10 => editor.move_up(),
                    11 => editor.move_down(),
                    12 => editor.move_word_left(),
                    13 => editor.move_word_right(),
                    14 => editor.cut_word(),
                    15 => editor.cut_to_end(),
                    16 => editor.paste_cut(),
                    _ => drop(editor.take_text()),
                }
                let boundary = editor.text.grapheme_indices(true).any(|(at, _)| at == editor.cursor);
                prop_assert!(boundary || editor.cursor == editor.text.len());
                let view = editor.layout_rows("> ", columns, 3);
                prop_assert!(view.row < view.rows.len() && view.rows.len() <= 3);
                prop_assert!(view.rows.iter().all(|row| row.width() <= columns));
            }
        }
    }
}
