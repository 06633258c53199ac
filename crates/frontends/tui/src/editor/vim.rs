//! Vim mode: keys that insert text, and keys that move and change it.
//!
//! Invariant: in normal mode, the cursor is on a character, never behind the last one of its line.
//! Every change can be undone.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use super::Editor;

/// The maximum number of changes that can be undone.
const MAX_UNDO: usize = 100;
/// The maximum repeat count of a command.
const MAX_COUNT: usize = 9_999;

/// The state of Vim mode: the mode, the command that is being typed, and the changes to undo.
#[derive(Debug, Default)]
pub(crate) struct Vim {
    mode: VimMode,
    /// The count that was typed before the command or after its operator.
    count: Option<usize>,
    /// The operator that waits for a motion, and the count that was typed before the operator.
    operator: Option<(VimOperator, usize)>,
    /// True if a `g` was typed and the second `g` of the command `gg` is missing.
    g: bool,
    /// The text and the cursor position before each change, for undo.
    undo: Vec<(String, usize)>,
    /// The text and the cursor position before insert mode was entered.
    before: (String, usize),
    /// True if the last deleted or copied text consists of whole lines.
    rows: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum VimMode {
    #[default]
    Insert,
    Normal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VimOperator {
    Delete,
    Change,
    Copy,
}

/// The text that a motion covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MotionReach {
    /// Covers the text up to this index, exclusive.
    Before(usize),
    /// Covers the text through the character at this index.
    Through(usize),
    /// Covers whole lines, through the line that contains this index.
    Rows(usize),
}

impl Vim {
    /// Returns the name of the mode, for the status line.
    pub(super) fn mode_name(&self) -> &'static str {
        match self.mode {
            VimMode::Insert => "INSERT",
            VimMode::Normal => "NORMAL",
        }
    }

    /// Resets the state of Vim mode for a new text.
    pub(super) fn reset(&mut self) {
        *self = Self {
            rows: self.rows,
            ..Self::default()
        };
    }

    /// Handles a key. Returns false if the key isn't bound in Vim mode.
    pub(super) fn handle_key(&mut self, editor: &mut Editor, key: KeyEvent) -> bool {
        let plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match (self.mode, key.code) {
            (VimMode::Insert, KeyCode::Esc) => {
                self.mode = VimMode::Normal;
                self.leave_insert(editor);
                if editor.cursor > editor.line_start() {
                    editor.move_left();
                }
                true
            }
            (VimMode::Insert, _) => false,
            (VimMode::Normal, KeyCode::Esc) => {
                // Esc first cancels a command that is being typed.
                let begun = self.count.is_some() || self.operator.is_some() || self.g;
                self.cancel_command();
                begun
            }
            (VimMode::Normal, KeyCode::Char(c)) if plain => {
                self.handle_normal_key(editor, c);
                true
            }
            (VimMode::Normal, KeyCode::Backspace) => {
                editor.move_left();
                true
            }
            (VimMode::Normal, _) => {
                self.cancel_command();
                false
            }
        }
    }

    fn cancel_command(&mut self) {
        (self.count, self.operator, self.g) = (None, None, false);
    }

    fn handle_normal_key(&mut self, editor: &mut Editor, c: char) {
        if let Some(digit) = c
            .to_digit(10)
            .filter(|digit| *digit > 0 || self.count.is_some())
        {
            self.count = Some((self.count.unwrap_or(0) * 10 + digit as usize).min(MAX_COUNT));
            return;
        }
        let typed = self.count;
        let waiting = self.operator.take();
        let count = (typed.unwrap_or(1) * waiting.map_or(1, |waiting| waiting.1)).min(MAX_COUNT);
        if std::mem::take(&mut self.g) {
            self.count = None;
            if c == 'g' {
                self.apply_motion(
                    editor,
                    waiting.map(|waiting| waiting.0),
                    MotionReach::Rows(line_start_by_number(&editor.text, count)),
                );
            }
            return self.clamp_cursor(editor);
        }
        let operator = match c {
            'd' => Some(VimOperator::Delete),
            'c' => Some(VimOperator::Change),
            'y' => Some(VimOperator::Copy),
            'g' => {
                (self.g, self.operator) = (true, waiting);
                return;
            }
            _ => None,
        };
        self.count = None;
        match (waiting, operator) {
            (None, Some(operator)) => self.operator = Some((operator, count)),
            // A doubled operator applies to whole lines.
            (Some((one, _)), Some(other)) => {
                if one == other {
                    let last = find_line_below(&editor.text, editor.cursor, count - 1);
                    self.apply_motion(editor, Some(one), MotionReach::Rows(last));
                }
            }
            (waiting, None) => match find_motion_target(
                editor,
                c,
                count,
                typed.is_some(),
                waiting.map(|waiting| waiting.0),
            ) {
                Some(reach) => self.apply_motion(editor, waiting.map(|waiting| waiting.0), reach),
                None if waiting.is_none() => self.run_command(editor, c, count),
                None => {}
            },
        }
        self.clamp_cursor(editor);
    }

    /// Moves the cursor, or applies the operator to the text between the cursor and the target.
    fn apply_motion(
        &mut self,
        editor: &mut Editor,
        operator: Option<VimOperator>,
        reach: MotionReach,
    ) {
        let Some(operator) = operator else {
            let (MotionReach::Before(to) | MotionReach::Through(to) | MotionReach::Rows(to)) =
                reach;
            editor.cursor = editor.boundary_at_or_after(to);
            return;
        };
        let at = editor.cursor;
        let (from, to) = match reach {
            MotionReach::Before(to) => (at.min(to), at.max(to)),
            MotionReach::Through(to) => (at.min(to), editor.next_boundary(at.max(to))),
            MotionReach::Rows(to) => (
                line_start_at(&editor.text, at.min(to)),
                line_end_at(&editor.text, at.max(to)),
            ),
        };
        // A change never splits a grapheme.
        let from = editor.boundary_at_or_after(from);
        let to = editor.boundary_at_or_after(to);
        self.rows = matches!(reach, MotionReach::Rows(_));
        if operator == VimOperator::Copy {
            editor.text[from..to].clone_into(&mut editor.cut);
            if !self.rows {
                editor.cursor = from;
            }
            return;
        }
        self.push_undo(editor);
        editor.text[from..to].clone_into(&mut editor.cut);
        editor.remove_range(from, to);
        match (operator, self.rows) {
            (VimOperator::Change, _) => self.begin_insert_after_change(editor),
            (VimOperator::Delete, true) => {
                // The line break is removed with the line.
                if editor.text[editor.cursor..].starts_with('\n') {
                    editor.remove_range(editor.cursor, editor.cursor + 1);
                } else if editor.cursor > 0 {
                    editor.remove_range(editor.cursor - 1, editor.cursor);
                    editor.move_to_line_start();
                }
            }
            (VimOperator::Delete | VimOperator::Copy, _) => {}
        }
    }

    fn run_command(&mut self, editor: &mut Editor, c: char, count: usize) {
        match c {
            'i' => self.begin_insert(editor, |_| {}),
            'a' => self.begin_insert(editor, |editor| {
                if editor.cursor < editor.line_end() {
                    editor.move_right();
                }
            }),
            'I' => self.begin_insert(editor, |editor| {
                editor.cursor =
                    editor.boundary_at_or_after(first_nonblank(&editor.text, editor.cursor));
            }),
            'A' => self.begin_insert(editor, Editor::move_to_line_end),
            'o' => self.begin_insert(editor, |editor| {
                editor.move_to_line_end();
                editor.insert_raw("\n");
            }),
            'O' => self.begin_insert(editor, |editor| {
                editor.move_to_line_start();
                editor.insert_raw("\n");
                editor.move_left();
            }),
            'x' => {
                let end = (0..count)
                    .fold(editor.cursor, |at, _| editor.next_boundary(at))
                    .min(editor.line_end());
                self.apply_motion(editor, Some(VimOperator::Delete), MotionReach::Before(end));
            }
            'D' => self.apply_motion(
                editor,
                Some(VimOperator::Delete),
                MotionReach::Before(editor.line_end()),
            ),
            'C' => self.apply_motion(
                editor,
                Some(VimOperator::Change),
                MotionReach::Before(editor.line_end()),
            ),
            'p' => self.paste_cut(editor, count),
            'u' => {
                if let Some((text, cursor)) = self.undo.pop() {
                    (editor.text, editor.cursor) = (text, cursor);
                }
            }
            'j' => (0..count).for_each(|_| editor.move_down()),
            'k' => (0..count).for_each(|_| editor.move_up()),
            _ => {}
        }
    }

    fn paste_cut(&mut self, editor: &mut Editor, count: usize) {
        let cut = editor.cut.clone();
        if cut.is_empty() {
            return;
        }
        self.push_undo(editor);
        // Bounds the length of the inserted text.
        let count = count.min(100);
        if self.rows {
            editor.move_to_line_end();
            let below = editor.cursor + 1;
            editor.insert_raw(&format!("\n{cut}").repeat(count));
            editor.cursor = below;
        } else {
            if editor.cursor < editor.line_end() {
                editor.move_right();
            }
            editor.insert_raw(&cut.repeat(count));
            editor.move_left();
        }
    }

    fn begin_insert(&mut self, editor: &mut Editor, first: impl FnOnce(&mut Editor)) {
        self.before = (editor.text.clone(), editor.cursor);
        first(editor);
        self.mode = VimMode::Insert;
    }

    /// Enters insert mode after a change. The change and the text typed afterwards are undone
    /// together.
    fn begin_insert_after_change(&mut self, editor: &Editor) {
        self.before = self
            .undo
            .pop()
            .unwrap_or_else(|| (editor.text.clone(), editor.cursor));
        self.mode = VimMode::Insert;
    }

    fn push_undo(&mut self, editor: &Editor) {
        self.push_undo_state((editor.text.clone(), editor.cursor));
    }

    /// Leaves insert mode. All text that was typed in insert mode is undone as one change.
    fn leave_insert(&mut self, editor: &Editor) {
        let before = std::mem::take(&mut self.before);
        if before.0 != editor.text {
            self.push_undo_state(before);
        }
    }

    fn push_undo_state(&mut self, before: (String, usize)) {
        self.undo.push(before);
        let extra = self.undo.len().saturating_sub(MAX_UNDO);
        self.undo.drain(..extra);
    }

    /// Moves the cursor onto a character, as normal mode requires.
    fn clamp_cursor(&self, editor: &mut Editor) {
        if self.mode == VimMode::Normal
            && editor.cursor == editor.line_end()
            && editor.cursor > editor.line_start()
        {
            editor.move_left();
        }
    }
}

/// Returns the target of a motion, or `None` if `c` isn't a motion.
fn find_motion_target(
    editor: &Editor,
    c: char,
    count: usize,
    counted: bool,
    operator: Option<VimOperator>,
) -> Option<MotionReach> {
    let text = editor.text.as_str();
    let at = editor.cursor;
    let times = |step: &dyn Fn(usize) -> usize| (0..count).fold(at, |at, _| step(at));
    Some(match c {
        'h' => {
            MotionReach::Before(times(&|at| editor.previous_boundary(at)).max(editor.line_start()))
        }
        'l' | ' ' => {
            MotionReach::Before(times(&|at| editor.next_boundary(at)).min(editor.line_end()))
        }
        '0' => MotionReach::Before(editor.line_start()),
        '^' => MotionReach::Before(first_nonblank(text, at)),
        '$' => MotionReach::Before(editor.line_end()),
        // `cw` changes the word, not the spaces after it.
        'w' if operator == Some(VimOperator::Change) && !is_blank(text, at) => {
            let last = (1..count).fold(run_end(text, at), |at, _| word_end(text, at));
            MotionReach::Through(last)
        }
        'w' => {
            let to = times(&|at| next_word_start(text, at));
            // An operator on the last word of a line leaves the line break.
            MotionReach::Before(if operator.is_some() {
                to.min(editor.line_end())
            } else {
                to
            })
        }
        'b' => MotionReach::Before(times(&|at| previous_word_start(text, at))),
        'e' => MotionReach::Through(times(&|at| word_end(text, at))),
        'G' if counted => MotionReach::Rows(line_start_by_number(text, count)),
        'G' => MotionReach::Rows(line_start_at(text, text.len())),
        'j' if operator.is_some() => MotionReach::Rows(find_line_below(text, at, count)),
        'k' if operator.is_some() => MotionReach::Rows((0..count).fold(at, |at, _| {
            line_start_at(text, at).checked_sub(1).unwrap_or(at)
        })),
        _ => return None,
    })
}

fn line_start_at(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |at| at + 1)
}

fn line_end_at(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end)
}

/// Returns an index in the line `count` lines below, or in the last line if there are fewer lines.
fn find_line_below(text: &str, at: usize, count: usize) -> usize {
    (0..count).fold(at, |at, _| {
        Some(line_end_at(text, at) + 1)
            .filter(|below| *below <= text.len())
            .unwrap_or(at)
    })
}

/// Returns the start of the line with the number `number`, counted from 1.
fn line_start_by_number(text: &str, number: usize) -> usize {
    find_line_below(text, 0, number - 1)
}

fn first_nonblank(text: &str, at: usize) -> usize {
    let start = line_start_at(text, at);
    let end = line_end_at(text, at);
    text[start..end]
        .find(|grapheme: char| !grapheme.is_whitespace())
        .map_or(end, |found| start + found)
}

/// Returns the class of a grapheme: space, word character, or other.
fn grapheme_class(grapheme: &str) -> u8 {
    match grapheme.chars().next() {
        Some(grapheme) if grapheme.is_whitespace() => 0,
        Some(grapheme) if grapheme.is_alphanumeric() || grapheme == '_' => 1,
        _ => 2,
    }
}

fn is_blank(text: &str, at: usize) -> bool {
    text[at..]
        .graphemes(true)
        .next()
        .is_none_or(|grapheme| grapheme_class(grapheme) == 0)
}

fn next_word_start(text: &str, at: usize) -> usize {
    let mut graphemes = text[at..]
        .grapheme_indices(true)
        .map(|(place, grapheme)| (at + place, grapheme_class(grapheme)));
    let Some((_, first)) = graphemes.next() else {
        return text.len();
    };
    let mut blank = first == 0;
    for (place, kind) in graphemes {
        if kind == 0 {
            blank = true;
        } else if blank || kind != first {
            return place;
        }
    }
    text.len()
}

/// Returns the index of the last grapheme in the run of graphemes of one class that starts at `at`.
fn run_end(text: &str, at: usize) -> usize {
    let mut graphemes = text[at..]
        .grapheme_indices(true)
        .map(|(place, grapheme)| (at + place, grapheme_class(grapheme)));
    let Some((mut last, first)) = graphemes.next() else {
        return at;
    };
    for (place, kind) in graphemes {
        if kind != first {
            break;
        }
        last = place;
    }
    last
}

fn word_end(text: &str, at: usize) -> usize {
    let mut graphemes = text[at..]
        .grapheme_indices(true)
        .map(|(place, grapheme)| (at + place, grapheme_class(grapheme)));
    graphemes.next();
    match graphemes.find(|grapheme| grapheme.1 != 0) {
        Some((place, _)) => run_end(text, place),
        None => text
            .grapheme_indices(true)
            .next_back()
            .map_or(0, |(place, _)| place.max(at)),
    }
}

fn previous_word_start(text: &str, at: usize) -> usize {
    let mut graphemes = text[..at]
        .grapheme_indices(true)
        .rev()
        .map(|(place, grapheme)| (place, grapheme_class(grapheme)));
    let Some((mut first, of)) = graphemes.find(|grapheme| grapheme.1 != 0) else {
        return 0;
    };
    for (place, kind) in graphemes {
        if kind != of {
            break;
        }
        first = place;
    }
    first
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn press(editor: &mut Editor, keys: &str) {
        for c in keys.chars() {
            let code = if c == '\u{1b}' {
                KeyCode::Esc
            } else {
                KeyCode::Char(c)
            };
            if !editor.handle_vim_key(KeyEvent::new(code, KeyModifiers::NONE))
                && code != KeyCode::Esc
            {
                editor.insert(c.encode_utf8(&mut [0; 4]));
            }
        }
    }

    /// Returns the text after these keys, with `|` at the cursor.
    fn text_after_keys(text: &str, keys: &str) -> String {
        let mut editor = Editor::default();
        editor.enable_vim();
        press(&mut editor, &format!("{text}\u{1b}gg0{keys}"));
        let mut shown = editor.text.clone();
        shown.insert(editor.cursor, '|');
        shown
    }

    #[test]
    fn vim_motions_move_the_cursor() {
        let text = "let a_b = (1, 2);\n  second row\nlast";
        for (keys, place) in [
            ("w", "let |a_b"),
            ("ww", "a_b |= ("),
            ("3w", "= |(1"),
            ("e", "le|t a"),
            ("ee", "a_|b ="),
            ("$", "2)|;\n"),
            ("$b", ", 2|);"),
            ("$bb", ", |2);"),
            ("2l", "le|t"),
            ("9l1h", "a_b |= "),
            ("j", "\n|  second"),
            ("j^", "  |second"),
            ("G", "\n|last"),
            ("2G", "\n|  second"),
            ("Ggg", "|let"),
            ("jj$k", "  s|econd"),
            ("$0", "|let"),
        ] {
            assert!(
                text_after_keys(text, keys).contains(place),
                "{keys}: {}",
                text_after_keys(text, keys)
            );
        }
    }

    #[test]
    fn vim_operators_change_the_text() {
        for (text, keys, result) in [
            ("one two three", "x", "|ne two three"),
            ("one two three", "3x", "| two three"),
            ("one two three", "dw", "|two three"),
            ("one two three", "2dw", "|three"),
            ("one two three", "d2w", "|three"),
            ("one two three", "wdw", "one |three"),
            ("one two three", "$bdw", "one two| "),
            ("one two three", "wD", "one| "),
            ("one two three", "cwa\u{1b}", "|a two three"),
            ("one two three", "wcea\u{1b}", "one |a three"),
            ("one two three", "wCa\u{1b}", "one |a"),
            ("one\ntwo\nthree", "jdd", "one\n|three"),
            ("one\ntwo\nthree", "Gdd", "one\n|two"),
            ("one\ntwo\nthree", "2dd", "|three"),
            ("one\ntwo\nthree", "ddp", "two\n|one\nthree"),
            ("one\ntwo\nthree", "dj", "|three"),
            ("one\ntwo", "ccnew\u{1b}", "ne|w\ntwo"),
            ("ab", "xp", "b|a"),
            ("one two", "dwu", "|one two"),
            ("one two", "cwa b\u{1b}u", "|one two"),
            ("one", "onext\u{1b}", "one\nnex|t"),
            ("one", "Oabove\u{1b}", "abov|e\none"),
            ("  one", "$Ia\u{1b}", "  |aone"),
            ("one", "A!\u{1b}", "one|!"),
            ("one", "a!\u{1b}", "o|!ne"),
            ("one", "yyp", "one\n|one"),
        ] {
            assert_eq!(text_after_keys(text, keys), result, "{text:?} {keys:?}");
        }
    }

    #[test]
    fn vim_undo_reverts_all_typing() {
        assert_eq!(text_after_keys("one", "A two\u{1b}xxu"), "one t|w");
        let mut editor = Editor::default();
        editor.enable_vim();
        press(&mut editor, "one\u{1b}uu");
        assert_eq!(editor.text, "");
    }

    #[test]
    fn vim_is_in_insert_mode_after_submit() {
        let mut editor = Editor::default();
        editor.enable_vim();
        press(&mut editor, "one\u{1b}");
        assert_eq!(editor.vim_mode(), Some("NORMAL"));
        editor.take_text();
        assert_eq!(editor.vim_mode(), Some("INSERT"));
        assert!(!Editor::default().handle_vim_key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)));
    }

    #[test]
    fn vim_esc_first_cancels_the_command() {
        let mut editor = Editor::default();
        editor.enable_vim();
        press(&mut editor, "one two\u{1b}0");
        let esc = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
        press(&mut editor, "2d");
        assert!(editor.handle_vim_key(esc) && !editor.handle_vim_key(esc));
        press(&mut editor, "w");
        assert_eq!((editor.text(), editor.cursor()), ("one two", 4));
    }

    proptest! {
        #[test]
        fn vim_keeps_the_cursor_valid(keys in "[a-zA-Z0-9$^ \u{1b}日\u{301}]{0,60}", first in "[a-z_ ().\n日\u{301}]{0,30}") {
            let mut editor = Editor::default();
            editor.enable_vim();
            editor.insert(&first);
            press(&mut editor, &format!("\u{1b}{keys}\u{1b}"));
            let boundary = editor.text.grapheme_indices(true).any(|(at, _)| at == editor.cursor);
            prop_assert!(boundary || editor.cursor == editor.text.len());
        }
    }
}
