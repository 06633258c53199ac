//! The line people type into, which may be many lines.
//!
//! Responsible for text, cursor, what was cut out, long pastes and history. Invariant: the cursor
//! stands between two characters as people see them, never inside one. A long paste is one
//! character here and is put in full when the text is taken.

mod shell_keys;
mod vim;

use std::ops::Range;

use crossterm::event::KeyEvent;
use haft_text::{reveal, sanitise, width};
use unicode_segmentation::UnicodeSegmentation;

use crate::line::{StyledLine, TextStyle};
use crate::wrap::NARROWEST;

use vim::Vim;

/// A paste longer than this is shown as one word.
const LONG_LINES: usize = 8;
const LONG_BYTES: usize = 1_000;
/// The characters that stand for pastes: nobody types them.
const PASTES: std::ops::RangeInclusive<char> = '\u{f0000}'..='\u{f0fff}';
const HISTORY: usize = 500;

/// What is being typed.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    cursor: usize,
    pastes: Vec<String>,
    cut: String,
    history: Vec<String>,
    /// The place in the history, and what was typed before it was left for it.
    recalled: Option<(usize, String)>,
    /// None where keys are those of a shell.
    vim: Option<Vim>,
}

/// The rows of the editor, and where its cursor is.
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

    /// Keys are those of vi.
    pub(crate) fn use_vim(&mut self) {
        self.vim = Some(Vim::default());
    }

    /// The mode of vi, if its keys are used.
    pub(crate) fn vim_mode(&self) -> Option<&'static str> {
        self.vim.as_ref().map(Vim::mode)
    }

    /// Gives a key to vi; whether it was one of its own.
    pub(crate) fn vim_key(&mut self, key: KeyEvent) -> bool {
        let Some(mut vim) = self.vim.take() else {
            return false;
        };
        let taken = vim.key(self, key);
        self.vim = Some(vim);
        taken
    }

    /// The text as it is shown, a paste being one character.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text with every paste in full.
    pub(crate) fn whole(&self) -> String {
        self.text.chars().map(|c| self.full(c)).collect()
    }

    /// Takes the text out, with every paste in full, and remembers it.
    pub(crate) fn take(&mut self) -> String {
        let text = self.whole();
        self.clear();
        self.vim.iter_mut().for_each(Vim::reset);
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
            let extra = self.history.len().saturating_sub(HISTORY);
            self.history.drain(..extra);
        }
        text
    }

    fn full(&self, c: char) -> String {
        self.paste_of(c)
            .map_or_else(|| c.to_string(), str::to_owned)
    }

    fn paste_of(&self, c: char) -> Option<&str> {
        let number = PASTES
            .contains(&c)
            .then(|| c as usize - *PASTES.start() as usize)?;
        self.pastes.get(number).map(String::as_str)
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.pastes.clear();
        (self.cursor, self.recalled) = (0, None);
    }

    /// Puts this text in place of what is there.
    pub(crate) fn set(&mut self, text: &str) {
        self.clear();
        self.insert(text);
    }

    /// Has the next letters typed rather than taken as commands of vi.
    pub(crate) fn type_next(&mut self) {
        self.vim.iter_mut().for_each(Vim::reset);
    }

    /// Types text.
    pub(crate) fn insert(&mut self, text: &str) {
        let text: String = text.chars().filter(|c| !PASTES.contains(c)).collect();
        self.put(&text);
    }

    fn put(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // A mark may have joined the character after it.
        self.cursor = self.boundary_from(self.cursor);
    }

    /// Takes a paste in: whole and shown as it is when it is short, as one word when it is long.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text = sanitise(&text);
        let long = text.len() > LONG_BYTES || text.lines().count() > LONG_LINES;
        let number = u32::from(*PASTES.start()) + self.pastes.len() as u32;
        match char::from_u32(number).filter(|c| long && PASTES.contains(c)) {
            Some(c) => {
                self.pastes
                    .push(text.chars().filter(|c| !PASTES.contains(c)).collect());
                self.put(&c.to_string());
            }
            None => self.insert(&text),
        }
    }

    pub(crate) fn backspace(&mut self) {
        let from = self.before(self.cursor);
        self.remove(from, self.cursor);
    }

    pub(crate) fn delete(&mut self) {
        let to = self.after(self.cursor);
        self.remove(self.cursor, to);
    }

    pub(crate) fn left(&mut self) {
        self.cursor = self.before(self.cursor);
    }

    pub(crate) fn right(&mut self) {
        self.cursor = self.after(self.cursor);
    }

    pub(crate) fn word_left(&mut self) {
        self.cursor = self.word_before();
    }

    pub(crate) fn word_right(&mut self) {
        let rest = &self.text[self.cursor..];
        let blank = rest.len() - rest.trim_start().len();
        let word = rest[blank..]
            .find(char::is_whitespace)
            .unwrap_or(rest.len() - blank);
        self.cursor += blank + word;
    }

    pub(crate) fn home(&mut self) {
        self.cursor = self.line_start();
    }

    pub(crate) fn end(&mut self) {
        self.cursor = self.line_end();
    }

    pub(crate) fn cut_to_end(&mut self) {
        let end = self.line_end();
        // At the end of a line the break itself is cut.
        let to = if end == self.cursor {
            self.after(end)
        } else {
            end
        };
        self.cut_out(self.cursor, to);
    }

    pub(crate) fn cut_to_start(&mut self) {
        self.cut_out(self.line_start(), self.cursor);
    }

    pub(crate) fn cut_word(&mut self) {
        self.cut_out(self.word_before(), self.cursor);
    }

    pub(crate) fn put_back(&mut self) {
        let cut = self.cut.clone();
        self.put(&cut);
    }

    /// How often a slash command was called, as far as the history goes back.
    pub(crate) fn uses(&self, command: &str) -> usize {
        let called = |text: &&String| {
            text.strip_prefix('/')
                .and_then(|text| text.split_whitespace().next())
                == Some(command)
        };
        self.history.iter().filter(called).count()
    }

    /// A row up, or back in the history from the first one.
    pub(crate) fn up(&mut self) {
        let start = self.line_start();
        if start == 0 {
            return self.recall_older();
        }
        let column = self.text[start..self.cursor].graphemes(true).count();
        let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = self.column_of(above, start - 1, column);
    }

    /// A row down, or forth in the history from the last one.
    pub(crate) fn down(&mut self) {
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
        self.cursor = self.column_of(below, until, column);
    }

    /// What was sent before, newest first, that holds this.
    pub(crate) fn search(&self, query: &str, skip: usize) -> Option<&str> {
        self.history
            .iter()
            .rev()
            .filter(|text| text.contains(query))
            .nth(skip)
            .map(String::as_str)
    }

    /// The word the cursor is in or behind, from its beginning to the cursor.
    pub(crate) fn word(&self) -> &str {
        let before = &self.text[..self.cursor];
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| self.after(at));
        let word = &before[start.min(before.len())..];
        // Chinese has no blanks: a file is mentioned directly behind it, and behind a bracket.
        // `a@b` and `x/@y` are one word.
        let begins = |at: &usize| {
            word[..*at].ends_with(|c: char| !c.is_ascii() || "([{<\"'`,;:=".contains(c))
        };
        let mention = word.match_indices('@').map(|(at, _)| at).rfind(begins);
        mention.map_or(word, |at| &word[at..])
    }

    /// Puts something in place of the word before the cursor.
    pub(crate) fn replace_word(&mut self, with: &str) {
        let from = self.cursor - self.word().len();
        self.remove(from, self.cursor);
        self.insert(with);
    }

    /// The rows to draw, no more than asked: those around the cursor. Words stay whole where they
    /// can.
    pub(crate) fn view(&self, prompt: &str, columns: usize, at_most: usize) -> EditorView {
        let front = width(prompt);
        let room = columns.saturating_sub(front + 1).max(NARROWEST);
        let cells: Vec<_> = self
            .text
            .grapheme_indices(true)
            .map(|(at, piece)| (at, self.shown(piece)))
            .collect();
        let rows = word_rows(&cells, room);
        let cursor = cells
            .iter()
            .position(|cell| cell.0 >= self.cursor)
            .unwrap_or(cells.len());
        let row = rows
            .iter()
            .rposition(|row| row.start <= cursor)
            .unwrap_or(0);
        let wide =
            |cells: &[(usize, String)]| cells.iter().map(|cell| width(&cell.1)).sum::<usize>();
        let column = wide(&cells[rows[row].start..cursor.min(rows[row].end)]);
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
            StyledLine::of(front_text, TextStyle::Accent)
                .and(text, TextStyle::Plain)
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

    fn shown(&self, piece: &str) -> String {
        let Some(c) = piece.chars().next() else {
            return String::new();
        };
        match self.paste_of(c) {
            Some(paste) => match paste.lines().count() {
                0 | 1 => text!("app-pasted-characters", count = paste.chars().count()),
                lines => text!("app-pasted-lines", lines),
            },
            None if c == '\n' => "\n".to_owned(),
            // A command that is edited before it runs may hold control characters. Drawing cleans
            // the rest: the width must be that of what is drawn.
            None => StyledLine::of(reveal(piece), TextStyle::Plain).plain(),
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
        self.recall(older);
    }

    fn recall_newer(&mut self) {
        let Some((at, draft)) = self.recalled.take() else {
            return;
        };
        if at + 1 < self.history.len() {
            self.recalled = Some((at, draft));
            self.recall(at + 1);
        } else {
            self.set(&draft);
        }
    }

    fn recall(&mut self, at: usize) {
        // A draft with pastes comes back in full.
        let draft = match self.recalled.take() {
            Some((_, draft)) => draft,
            None => self.whole(),
        };
        let text = self.history[at].clone();
        self.set(&text);
        self.recalled = Some((at, draft));
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = self.boundary_from(from);
    }

    fn cut_out(&mut self, from: usize, to: usize) {
        if from < to {
            self.text[from..to].clone_into(&mut self.cut);
            self.remove(from, to);
        }
    }

    fn before(&self, at: usize) -> usize {
        self.text[..at]
            .grapheme_indices(true)
            .next_back()
            .map_or(0, |(from, _)| from)
    }

    fn after(&self, at: usize) -> usize {
        at + self.text[at..].graphemes(true).next().map_or(0, str::len)
    }

    /// The first boundary between characters that is not before this place.
    fn boundary_from(&self, at: usize) -> usize {
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

    fn word_before(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before
            .rfind(char::is_whitespace)
            .map_or(0, |at| self.after(at))
    }

    fn column_of(&self, from: usize, to: usize, column: usize) -> usize {
        let line = &self.text[from..to];
        line.grapheme_indices(true)
            .nth(column)
            .map_or(to, |(at, _)| from + at)
    }
}

/// Where rows of this many columns begin and end, in cells; line breaks are in none of them.
fn word_rows(cells: &[(usize, String)], room: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let mut start = 0;
    let mut used = 0;
    // Behind the last blank of the row.
    let mut chance = None;
    for (at, (_, text)) in cells.iter().enumerate() {
        if text == "\n" {
            rows.push(start..at);
            (start, used, chance) = (at + 1, 0, None);
            continue;
        }
        let wide = width(text);
        // A blank may stand in the last column, which is the cursor's.
        let fits = used + wide <= room || text == " " && used == room;
        if !fits && at > start {
            let end = chance.take().filter(|_| text != " ").unwrap_or(at);
            rows.push(start..end);
            start = end;
            used = cells[start..at].iter().map(|cell| width(&cell.1)).sum();
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

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn chinese_is_typed_moved_over_and_erased_as_people_see_it() {
        for input in include_str!("../../../testkit/fixtures/chinese_inputs.txt").lines() {
            // An input method sends a word at once, a paste everything.
            let mut editor = Editor::default();
            let middle = input
                .grapheme_indices(true)
                .nth(input.graphemes(true).count() / 2)
                .map_or(0, |(at, _)| at);
            editor.insert(&input[..middle]);
            editor.insert(&input[middle..]);
            assert_eq!(editor.text(), typed(input).text());
            let whole = editor.text().to_owned();
            for columns in [12, 40, 80, 200] {
                let view = editor.view("> ", columns, usize::MAX);
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
    fn a_file_is_mentioned_directly_behind_chinese() {
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
            assert_eq!(typed(text).word(), word, "{text}");
        }
        let mut editor = typed("对比@a.rs和@b");
        editor.replace_word("@lib.rs ");
        assert_eq!(editor.text(), "对比@a.rs和@lib.rs ");
    }

    #[test]
    fn a_letter_is_what_people_see() {
        let mut editor = typed("ae\u{301}👨‍👩‍👧");
        editor.backspace();
        assert_eq!(editor.text(), "ae\u{301}");
        editor.left();
        editor.delete();
        assert_eq!(editor.text(), "a");
    }

    #[test]
    fn a_long_paste_is_one_letter_and_comes_out_whole() {
        let lines = "line of the paste\r\n".repeat(5_000);
        let mut editor = typed("before ");
        editor.paste(&lines);
        editor.insert(" after");
        let view = editor.view("> ", 60, 5);
        assert_eq!(view.rows[0].plain(), "> before [pasted 5,000 lines] after");
        assert_eq!(
            editor.take(),
            format!("before {} after", lines.replace("\r\n", "\n"))
        );
        editor.paste(&lines);
        editor.backspace();
        assert!(editor.is_empty());
    }

    #[test]
    fn a_paste_types_no_keys() {
        let mut editor = typed("");
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
        let mut editor = typed("one");
        editor.take();
        editor.insert("two\nlines");
        editor.take();
        editor.insert("draft");
        editor.up();
        assert_eq!(editor.text(), "two\nlines");
        editor.up();
        assert_eq!(
            (editor.text(), editor.cursor()),
            ("two\nlines", 3),
            "first through its rows"
        );
        editor.up();
        assert_eq!(editor.text(), "one");
        editor.up();
        assert_eq!(editor.text(), "one");
        editor.down();
        assert_eq!(editor.text(), "two\nlines");
        editor.down();
        assert_eq!(editor.text(), "draft");
        assert_eq!(editor.search("o", 1), Some("one"));
    }

    #[test]
    fn what_is_cut_can_be_put_back() {
        let mut editor = typed("git commit -m");
        editor.cut_word();
        assert_eq!(editor.text(), "git commit ");
        editor.home();
        editor.put_back();
        assert_eq!(editor.text(), "-mgit commit ");
        editor.cut_to_end();
        assert_eq!(editor.text(), "-m");
    }

    #[test]
    fn the_cursor_is_drawn_where_it_is() {
        let mut editor = typed("日本語 text that is long\nsecond");
        let view = editor.view("> ", 14, 9);
        assert_eq!(
            view.rows.iter().map(StyledLine::plain).collect::<Vec<_>>(),
            ["> 日本語 text ", "  that is ", "  long", "  second"]
        );
        assert_eq!((view.row, view.column), (3, 8));
        editor.up();
        editor.home();
        editor.right();
        let view = editor.view("> ", 14, 2);
        assert_eq!((view.rows.len(), view.row, view.column), (2, 0, 4));
        let rows: Vec<_> = typed("abcdefghijklmnop qr")
            .view("> ", 14, 9)
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
        fn no_key_breaks_it(keys in prop::collection::vec((0u8..18, "\\PC{0,4}|\n|\u{301}|日"), 0..60), columns in 1usize..40) {
            let mut editor = Editor::default();
            for (key, text) in keys {
                match key {
                    0..=5 => editor.insert(&text),
                    6 => editor.backspace(),
                    7 => editor.delete(),
                    8 => editor.left(),
                    9 => editor.right(),
                    10 => editor.up(),
                    11 => editor.down(),
                    12 => editor.word_left(),
                    13 => editor.word_right(),
                    14 => editor.cut_word(),
                    15 => editor.cut_to_end(),
                    16 => editor.put_back(),
                    _ => drop(editor.take()),
                }
                let boundary = editor.text.grapheme_indices(true).any(|(at, _)| at == editor.cursor);
                prop_assert!(boundary || editor.cursor == editor.text.len());
                let view = editor.view("> ", columns, 3);
                prop_assert!(view.row < view.rows.len() && view.rows.len() <= 3);
                prop_assert!(view.rows.iter().all(|row| row.width() <= columns));
            }
        }
    }
}
