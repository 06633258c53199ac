//! Parses words piece by piece.

use super::quoting::QuoteContext;
use super::{
    Result, ShellParser, ShellScript, ShellWord, UnsupportedSyntax, WordSplitting, WordValue,
};
use crate::shape::{ANY, ANY_CHAR, ANY_IN_NAME, HOME, STAR, UNDOTTED};

/// A word that is being parsed.
#[derive(Default)]
pub(super) struct WordBuilder {
    value: String,
    /// The texts to which the value may expand, as a shape.
    shape: String,
    /// The closing characters of lists and sets that are still open.
    open: Vec<char>,
    /// The position in the value directly after the character that opens the outermost list or set.
    opened: usize,
    /// The positions at which the first set of characters begins: in the value and in the shape.
    first_set: Option<(usize, usize)>,
    /// The length of the value before the first piece known only to the shell.
    known: Option<usize>,
    /// True if an unquoted expansion can split the word.
    splits: bool,
    /// True if the word begins with a tilde for the user's home folder.
    home: bool,
    /// The scripts of the word's substitutions.
    pub(super) scripts: Vec<ShellScript>,
}

impl WordBuilder {
    pub(super) fn push(&mut self, c: char) {
        self.value.push(c);
        if self.open.is_empty() {
            self.shape.push(c);
        }
    }

    /// Adds a wildcard, or a character that opens a set or a list of alternatives.
    fn push_pattern_char(&mut self, c: char) {
        self.mark_dynamic();
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
                self.shape.push(if c == '*' { STAR } else { ANY_CHAR });
            }
        }
    }

    /// Closes a list of alternatives. If no alternative contains a slash or `..`, the expansion
    /// stays within one path component.
    fn close_list(&mut self, c: char) {
        self.value.push(c);
        self.open.pop();
        if self.open.is_empty() && self.shape.ends_with(ANY) {
            self.shape.pop();
            self.push_unknown_since(self.opened);
        }
    }

    /// Handles a `]`. The shell may treat every earlier `]` as a member of the first set (`[]e]`,
    /// `[[.].]e]`), so everything since the beginning of that set is unknown.
    fn close_set(&mut self, c: char) {
        if self.open.last() == Some(&c) {
            self.open.pop();
        }
        self.value.push(c);
        match self.first_set {
            Some((value, shape)) if self.open.is_empty() => {
                self.shape.truncate(shape);
                self.push_unknown_since(value);
            }
            None if self.open.is_empty() => self.shape.push(c),
            Some(_) | None => {}
        }
    }

    /// Adds to the shape the possible expansions of the value from index `value` on. Text without a
    /// slash or `..` stays within one path component.
    fn push_unknown_since(&mut self, value: usize) {
        let inside = self.value.get(value..).unwrap_or_default();
        self.shape
            .push(if inside.contains('/') || inside.contains("..") {
                ANY
            } else {
                ANY_IN_NAME
            });
    }

    /// Adds a tilde whose expansion is known only to the shell.
    fn push_unknown_home(&mut self) {
        self.mark_dynamic();
        self.value.push('~');
        self.shape.push(ANY);
    }

    /// Marks the rest of the word, from the current position on, as known only to the shell.
    pub(super) fn mark_dynamic(&mut self) {
        self.known.get_or_insert(self.value.len());
    }

    /// Marks an expansion, whose value is known only to the shell and which may be split into words
    /// if it is not quoted.
    pub(super) fn mark_expansion(&mut self, quotes: QuoteContext) {
        self.mark_dynamic();
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

/// True for a character that ends an unquoted word.
pub(super) fn ends_word(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'
    )
}

impl ShellParser<'_> {
    /// Parses one word. Returns an error if no word begins at the cursor.
    pub(super) fn parse_word(&mut self) -> Result<ShellWord> {
        // Skips joined lines before the word, which are not part of it.
        self.cursor.peek();
        let start = self.cursor.position();
        let mut word = WordBuilder::default();
        if self.cursor.starts_with("<(") || self.cursor.starts_with(">(") {
            self.parse_process_substitution(&mut word)?;
            return Ok(word.finish(self.cursor.text_since(start)));
        }
        while let Some(c) = self.cursor.peek() {
            if ends_word(c) {
                break;
            }
            self.cursor.next();
            let first = self.cursor.text_since(start).len() == c.len_utf8();
            self.parse_piece(c, first, &mut word)?;
        }
        if self.cursor.starts_with("<(") || self.cursor.starts_with(">(") {
            return Err(UnsupportedSyntax("a process substitution inside a word"));
        }
        let source = self.cursor.text_since(start);
        if source.is_empty() {
            return Err(UnsupportedSyntax("a syntax this program does not know"));
        }
        if source == "{}" {
            // `find` and `xargs` replace this word; the shell leaves empty braces unchanged.
            word.known = None;
            source.clone_into(&mut word.shape);
        }
        Ok(word.finish(source))
    }

    fn parse_piece(&mut self, c: char, first: bool, word: &mut WordBuilder) -> Result<()> {
        match c {
            '\'' => self.parse_single_quoted(word)?,
            '"' => self.parse_double_quoted(word)?,
            '\\' => word.push(
                self.cursor
                    .raw_next()
                    .ok_or(UnsupportedSyntax("a backslash at its end"))?,
            ),
            '$' => self.parse_dollar(word, QuoteContext::Outside)?,
            '`' => self.parse_backquoted(word, QuoteContext::Outside)?,
            '~' if first => self.parse_tilde(word),
            // In a word that resembles an assignment, a tilde is also expanded after `=` and `:`.
            '~' if word.value.ends_with(['=', ':']) => word.push_unknown_home(),
            // By itself `[` is the name of a command; otherwise it could begin a set of characters.
            '[' if first && self.cursor.peek().is_none_or(ends_word) => word.push(c),
            '*' | '?' | '{' | '[' => word.push_pattern_char(c),
            '}' if word.open.last() == Some(&c) => word.close_list(c),
            ']' => word.close_set(c),
            other => word.push(other),
        }
        Ok(())
    }

    fn parse_tilde(&mut self, word: &mut WordBuilder) {
        match self.cursor.peek() {
            None | Some('/') => word.home = true,
            Some(next) if ends_word(next) => word.home = true,
            // Another user's home folder, or the previous folder: known only to the shell.
            Some(_) => word.push_unknown_home(),
        }
    }

    fn parse_process_substitution(&mut self, word: &mut WordBuilder) -> Result<()> {
        self.cursor.next();
        self.cursor.next();
        word.mark_dynamic();
        word.shape.push_str("/dev/fd/");
        word.scripts.push(self.parse_substitution()?);
        match self.cursor.peek() {
            Some(next) if !ends_word(next) || matches!(next, '(' | '<' | '>') => {
                Err(UnsupportedSyntax("a process substitution inside a word"))
            }
            Some(_) | None => Ok(()),
        }
    }
}
