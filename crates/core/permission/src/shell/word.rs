//! Words, piece by piece.

use super::quoting::Quotes;
use super::{NotUnderstood, Parser, Result, Script, Splits, Text, Word};

/// A word that is being read.
#[derive(Default)]
pub(super) struct Building {
    value: String,
    /// How much of the value stood before the first piece that only the shell knows.
    known: Option<usize>,
    /// Whether an unquoted expansion can make several words of it.
    splits: bool,
    /// Whether it begins with a tilde for the home folder.
    home: bool,
    /// What its substitutions run.
    pub(super) scripts: Vec<Script>,
}

impl Building {
    pub(super) fn push(&mut self, one: char) {
        self.value.push(one);
    }

    /// From here on only the shell knows.
    pub(super) fn dynamic(&mut self) {
        self.known.get_or_insert(self.value.len());
    }

    /// From here on only the shell knows, and without quotes it splits what it finds.
    pub(super) fn expands(&mut self, quotes: Quotes) {
        self.dynamic();
        self.splits |= quotes == Quotes::Outside;
    }

    fn finish(self, source: &str) -> Word {
        let lead = self.known.map(|known| self.value.get(..known).unwrap_or_default());
        let splits = if self.splits { Splits::Yes } else { Splits::No };
        let text = match lead {
            Some(lead) if self.home => Text::Dynamic { lead: format!("~{lead}"), splits },
            Some(lead) => Text::Dynamic { lead: lead.to_owned(), splits },
            None if self.home => Text::Home(self.value),
            None => Text::Literal(self.value),
        };
        Word { source: source.replace("\\\n", ""), text, scripts: self.scripts }
    }
}

/// What ends an unquoted word.
pub(super) fn ends_word(one: char) -> bool {
    matches!(one, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

impl Parser<'_> {
    /// Reads one word; an error if there is none here.
    pub(super) fn word(&mut self) -> Result<Word> {
        // Joined lines before it are not part of it.
        self.cursor.peek();
        let start = self.cursor.at();
        let mut word = Building::default();
        if self.cursor.looking_at("<(") || self.cursor.looking_at(">(") {
            self.process_substitution(&mut word)?;
            return Ok(word.finish(self.cursor.since(start)));
        }
        while let Some(one) = self.cursor.peek() {
            if ends_word(one) {
                break;
            }
            self.cursor.next();
            let first = self.cursor.since(start).len() == one.len_utf8();
            self.piece(one, first, &mut word)?;
        }
        if self.cursor.looking_at("<(") || self.cursor.looking_at(">(") {
            return Err(NotUnderstood("a process substitution inside a word"));
        }
        let source = self.cursor.since(start);
        if source.is_empty() {
            return Err(NotUnderstood("a syntax this program does not know"));
        }
        if source == "{}" {
            // What `find` and `xargs` replace; braces with nothing in them are only braces.
            word.known = None;
        }
        Ok(word.finish(source))
    }

    fn piece(&mut self, one: char, first: bool, word: &mut Building) -> Result<()> {
        match one {
            '\'' => self.single_quoted(word)?,
            '"' => self.double_quoted(word)?,
            '\\' => word.push(self.cursor.raw_next().ok_or(NotUnderstood("a backslash at its end"))?),
            '$' => self.dollar(word, Quotes::Outside)?,
            '`' => self.backquoted(word, Quotes::Outside)?,
            '~' if first => self.tilde(word),
            // In what looks like an assignment a tilde is expanded after `=` and `:` too.
            '~' if word.value.ends_with(['=', ':']) => {
                word.dynamic();
                word.push(one);
            }
            // Alone it is the name of a command; otherwise it could begin a set of characters.
            '[' if first && self.cursor.peek().is_none_or(ends_word) => word.push(one),
            '*' | '?' | '{' | '[' => {
                word.dynamic();
                word.push(one);
            }
            other => word.push(other),
        }
        Ok(())
    }

    fn tilde(&mut self, word: &mut Building) {
        match self.cursor.peek() {
            None | Some('/') => word.home = true,
            Some(next) if ends_word(next) => word.home = true,
            // Somebody's home, or the folder before: only the shell knows.
            Some(_) => {
                word.dynamic();
                word.push('~');
            }
        }
    }

    fn process_substitution(&mut self, word: &mut Building) -> Result<()> {
        self.cursor.next();
        self.cursor.next();
        word.dynamic();
        word.scripts.push(self.substitution()?);
        match self.cursor.peek() {
            Some(next) if !ends_word(next) || matches!(next, '(' | '<' | '>') => {
                Err(NotUnderstood("a process substitution inside a word"))
            }
            Some(_) | None => Ok(()),
        }
    }
}
