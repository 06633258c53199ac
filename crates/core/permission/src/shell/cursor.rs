//! A position in a command line.
//!
//! A backslash before a line break joins two lines wherever the shell splits words, so the cursor
//! skips it. Where a backslash has another meaning, the `raw` functions are used.

#[derive(Clone)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn text_since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn raw_peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn raw_next(&mut self) -> Option<char> {
        let next = self.raw_peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Moves back by one character, which must have a length of one byte.
    pub(super) fn step_back_one_byte(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    pub(super) fn peek(&mut self) -> Option<char> {
        while self.rest().starts_with("\\\n") {
            self.at += 2;
        }
        self.raw_peek()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        self.peek()?;
        self.raw_next()
    }

    pub(super) fn starts_with(&mut self, wanted: &str) -> bool {
        self.clone().eat(wanted)
    }

    /// Skips `wanted` if the text continues with `wanted`. Returns true if the text was skipped.
    pub(super) fn eat(&mut self, wanted: &str) -> bool {
        let mut ahead = self.clone();
        for c in wanted.chars() {
            if ahead.next() != Some(c) {
                return false;
            }
        }
        *self = ahead;
        true
    }

    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.next();
        }
    }

    /// Returns the rest of the current line and moves to the next line, or returns `None` at the
    /// end of the text.
    pub(super) fn next_raw_line(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let line = rest.split('\n').next().unwrap_or_default();
        self.at = (self.at + line.len() + 1).min(self.text.len());
        Some(line)
    }
}
