//! Words, piece by piece.

use super::quoting::QuoteContext;
use super::{
    Result, ShellParser, ShellScript, ShellWord, UnsupportedSyntax, WordSplitting, WordValue,
};
use crate::shape::{ANY, HOME, MANY, ONE, STAR, UNDOTTED};

/// A word that is being read.
#[derive(Default)]
pub(super) struct WordBuilder {
    value: String,
    /// Every text the value may become.
    shape: String,
    /// What closes the lists and sets that were opened and not yet closed, and where the outermost
    /// begins in the value.
    open: Vec<char>,
    opened: usize,
    /// Where the first set of characters begins, in the value and in the shape.
    first_set: Option<(usize, usize)>,
    /// How much of the value stood before the first piece that only the shell knows.
    known: Option<usize>,
    /// Whether an unquoted expansion can make several words of it.
    splits: bool,
    /// Whether it begins with a tilde for the home folder.
    home: bool,
    /// What its substitutions run.
    pub(super) scripts: Vec<ShellScript>,
}

impl WordBuilder {
    pub(super) fn push(&mut self, c: char) {
        self.value.push(c);
        if self.open.is_empty() {
            self.shape.push(c);
        }
    }

    /// A character of a pattern, a set or a list of alternatives.
    fn pattern(&mut self, c: char) {
        self.dynamic();
        self.value.push(c);
        let closer = if c == '{' { '}' } else { ']' };
        match c {
            '{' | '[' => {
                if self.open.is_empty() {
                    self.opened = self.value.len();
                    self.shape.push(ANY);
                }
                if c == '[' && self.first_set.is_none() {
                    self.first_set = Some((self.opened, self.shape.len() - ANY.len_utf8()));
                }
                self.open.push(closer);
            }
            _ if !self.open.is_empty() => {}
            _ => {
                if self.shape.is_empty() || self.shape.ends_with('/') {
                    self.shape.push(UNDOTTED);
                }
                self.shape.push(if c == '*' { STAR } else { ONE });
            }
        }
    }

    /// The end of a set or list. One whose alternatives are no paths stays within a name.
    fn close(&mut self, c: char) {
        self.value.push(c);
        self.open.pop();
        if self.open.is_empty() && self.shape.ends_with(ANY) {
            self.shape.pop();
            self.unknown_since(self.opened);
        }
    }

    /// A `]`. The shell may have taken every earlier one for a member of the first set (`[]e]`,
    /// `[[.].]e]`), so all since that one began is unknown.
    fn end_of_set(&mut self, c: char) {
        if self.open.last() == Some(&c) {
            self.open.pop();
        }
        self.value.push(c);
        match self.first_set {
            Some((value, shape)) if self.open.is_empty() => {
                self.shape.truncate(shape);
                self.unknown_since(value);
            }
            None if self.open.is_empty() => self.shape.push(c),
            Some(_) | None => {}
        }
    }

    /// Adds to the shape what the value since there may become: what names no path stays within a
    /// name.
    fn unknown_since(&mut self, value: usize) {
        let inside = self.value.get(value..).unwrap_or_default();
        self.shape
            .push(if inside.contains('/') || inside.contains("..") {
                ANY
            } else {
                MANY
            });
    }

    /// A tilde that only the shell knows.
    fn foreign_home(&mut self) {
        self.dynamic();
        self.value.push('~');
        self.shape.push(ANY);
    }

    /// From here on only the shell knows.
    pub(super) fn dynamic(&mut self) {
        self.known.get_or_insert(self.value.len());
    }

    /// From here on only the shell knows, and without quotes it splits what it finds.
    pub(super) fn expands(&mut self, quotes: QuoteContext) {
        self.dynamic();
        self.shape.push(ANY);
        self.splits |= quotes == QuoteContext::Outside;
    }

    fn finish(mut self, source: &str) -> ShellWord {
        if self.home {
            self.shape.insert(0, HOME);
        }
        let lead = self
            .known
            .map(|known| self.value.get(..known).unwrap_or_default());
        let splits = if self.splits {
            WordSplitting::Yes
        } else {
            WordSplitting::No
        };
        let text = match lead {
            Some(lead) if self.home => WordValue::Dynamic {
                lead: format!("~{lead}"),
                splits,
            },
            Some(lead) => WordValue::Dynamic {
                lead: lead.to_owned(),
                splits,
            },
            None if self.home => WordValue::Home(self.value),
            None => WordValue::Literal(self.value),
        };
        ShellWord {
            source: source.replace("\\\n", ""),
            text,
            shape: self.shape,
            scripts: self.scripts,
        }
    }
}

/// What ends an unquoted word.
pub(super) fn ends_word(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'
    )
}

impl ShellParser<'_> {
    /// Reads one word; an error if there is none here.
    pub(super) fn word(&mut self) -> Result<ShellWord> {
        // Joined lines before it are not part of it.
        self.cursor.peek();
        let start = self.cursor.at();
        let mut word = WordBuilder::default();
        if self.cursor.looking_at("<(") || self.cursor.looking_at(">(") {
            self.process_substitution(&mut word)?;
            return Ok(word.finish(self.cursor.since(start)));
        }
        while let Some(c) = self.cursor.peek() {
            if ends_word(c) {
                break;
            }
            self.cursor.next();
            let first = self.cursor.since(start).len() == c.len_utf8();
            self.piece(c, first, &mut word)?;
        }
        if self.cursor.looking_at("<(") || self.cursor.looking_at(">(") {
            return Err(UnsupportedSyntax("a process substitution inside a word"));
        }
        let source = self.cursor.since(start);
        if source.is_empty() {
            return Err(UnsupportedSyntax("a syntax this program does not know"));
        }
        if source == "{}" {
            // What `find` and `xargs` replace; braces with nothing in them are only braces.
            word.known = None;
            source.clone_into(&mut word.shape);
        }
        Ok(word.finish(source))
    }

    fn piece(&mut self, c: char, first: bool, word: &mut WordBuilder) -> Result<()> {
        match c {
            '\'' => self.single_quoted(word)?,
            '"' => self.double_quoted(word)?,
            '\\' => word.push(
                self.cursor
                    .raw_next()
                    .ok_or(UnsupportedSyntax("a backslash at its end"))?,
            ),
            '$' => self.dollar(word, QuoteContext::Outside)?,
            '`' => self.backquoted(word, QuoteContext::Outside)?,
            '~' if first => self.tilde(word),
            // In what looks like an assignment a tilde is expanded after `=` and `:` too.
            '~' if word.value.ends_with(['=', ':']) => word.foreign_home(),
            // Alone it is the name of a command; otherwise it could begin a set of characters.
            '[' if first && self.cursor.peek().is_none_or(ends_word) => word.push(c),
            '*' | '?' | '{' | '[' => word.pattern(c),
            '}' if word.open.last() == Some(&c) => word.close(c),
            ']' => word.end_of_set(c),
            other => word.push(other),
        }
        Ok(())
    }

    fn tilde(&mut self, word: &mut WordBuilder) {
        match self.cursor.peek() {
            None | Some('/') => word.home = true,
            Some(next) if ends_word(next) => word.home = true,
            // Somebody's home, or the folder before: only the shell knows.
            Some(_) => word.foreign_home(),
        }
    }

    fn process_substitution(&mut self, word: &mut WordBuilder) -> Result<()> {
        self.cursor.next();
        self.cursor.next();
        word.dynamic();
        word.shape.push_str("/dev/fd/");
        word.scripts.push(self.substitution()?);
        match self.cursor.peek() {
            Some(next) if !ends_word(next) || matches!(next, '(' | '<' | '>') => {
                Err(UnsupportedSyntax("a process substitution inside a word"))
            }
            Some(_) | None => Ok(()),
        }
    }
}
