//! A place in a command line. A backslash before a line break joins two lines wherever the shell
//! still looks for words, so the cursor steps over it; where it means something else, the `raw`
//! functions are used.

#[derive(Clone)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn since(&self, start: usize) -> &'a str {
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

    /// Takes back a character that was one byte.
    pub(super) fn back_one_byte(&mut self) {
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

    pub(super) fn looking_at(&mut self, wanted: &str) -> bool {
        self.clone().eat(wanted)
    }

    /// Steps over exactly this, or stays.
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

    /// The rest of this line, without its end; the cursor is behind the end then. None when there
    /// is no line any more.
    pub(super) fn raw_line(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let line = rest.split('\n').next().unwrap_or_default();
        self.at = (self.at + line.len() + 1).min(self.text.len());
        Some(line)
    }
}
