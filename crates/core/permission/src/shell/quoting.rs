//! Single, double, and ANSI-C quotes, and the escapes in them.

use super::word::WordBuilder;
use super::{Result, ShellParser, ShellScript, UnsupportedSyntax};

impl ShellParser<'_> {
    /// Parses the text after an opening `'`.
    pub(super) fn single_quoted(&mut self, word: &mut WordBuilder) -> Result<()> {
        loop {
            match self
                .cursor
                .raw_next()
                .ok_or(UnsupportedSyntax("a quote without its end"))?
            {
                '\'' => return Ok(()),
                other => word.push(other),
            }
        }
    }

    /// Parses the text after an opening `"`.
    pub(super) fn double_quoted(&mut self, word: &mut WordBuilder) -> Result<()> {
        loop {
            match self
                .cursor
                .next()
                .ok_or(UnsupportedSyntax("a quote without its end"))?
            {
                '"' => return Ok(()),
                '\\' => self.escape_in_text(word)?,
                '$' => self.dollar(word, QuoteContext::Inside)?,
                '`' => self.backquoted(word, QuoteContext::Inside)?,
                other => word.push(other),
            }
        }
    }

    /// Parses a backslash where only some characters can be escaped.
    fn escape_in_text(&mut self, word: &mut WordBuilder) -> Result<()> {
        match self
            .cursor
            .raw_next()
            .ok_or(UnsupportedSyntax("a backslash at its end"))?
        {
            // The cursor has already joined lines that end in a backslash.
            escaped @ ('$' | '`' | '"' | '\\') => word.push(escaped),
            other => {
                word.push('\\');
                word.push(other);
            }
        }
        Ok(())
    }

    /// Parses the text after an opening `$'`. An escape that is not a plain character is an error.
    pub(super) fn ansi_quoted(&mut self, word: &mut WordBuilder) -> Result<()> {
        let unusual = UnsupportedSyntax("an unusual escape in `$'…'`");
        loop {
            let c = self
                .cursor
                .raw_next()
                .ok_or(UnsupportedSyntax("a quote without its end"))?;
            match c {
                '\'' => return Ok(()),
                '\\' => {}
                other => {
                    word.push(other);
                    continue;
                }
            }
            match self.cursor.raw_next().ok_or(unusual)? {
                same @ ('\\' | '\'' | '"' | '?') => word.push(same),
                'n' => word.push('\n'),
                't' => word.push('\t'),
                'x' => word.push(self.coded(16, 2).ok_or(unusual)?),
                'u' => word.push(self.coded(16, 4).ok_or(unusual)?),
                'U' => word.push(self.coded(16, 8).ok_or(unusual)?),
                '0'..='7' => {
                    self.cursor.back_one_byte();
                    word.push(self.coded(8, 3).ok_or(unusual)?);
                }
                _ => return Err(unusual),
            }
        }
    }

    /// Parses the number of a printable ASCII character, with up to `most` digits.
    fn coded(&mut self, radix: u32, most: usize) -> Option<char> {
        let mut code = 0_u32;
        let mut digits = 0;
        while digits < most
            && let Some(digit) = self.cursor.raw_peek().and_then(|c| c.to_digit(radix))
        {
            code = code.checked_mul(radix)?.checked_add(digit)?;
            self.cursor.raw_next();
            digits += 1;
        }
        char::from_u32(code).filter(|c| digits > 0 && matches!(c, ' '..='~'))
    }

    /// Returns the scripts of the substitutions in a text that is expanded like a double-quoted one
    /// but has no closing quote.
    pub(super) fn scripts_of_text(&self, text: &str) -> Result<Vec<ShellScript>> {
        let mut inner = ShellParser::over(text, self.depth);
        let mut word = WordBuilder::default();
        inner.deeper(|inner| {
            while let Some(c) = inner.cursor.next() {
                match c {
                    '\\' => inner.escape_in_text(&mut word)?,
                    '$' => inner.dollar(&mut word, QuoteContext::Inside)?,
                    '`' => inner.backquoted(&mut word, QuoteContext::Inside)?,
                    other => word.push(other),
                }
            }
            Ok(())
        })?;
        Ok(word.scripts)
    }
}

/// The position of a `$` relative to double quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteContext {
    Inside,
    Outside,
}
