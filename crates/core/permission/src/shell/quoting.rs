//! Single, double and ANSI-C quotes, and the escapes in them.

use super::word::WordBuilder;
use super::{Result, ShellParser, ShellScript, UnsupportedSyntax};

impl ShellParser<'_> {
    /// After the opening `'`.
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

    /// After the opening `"`.
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

    /// A backslash where only some characters can be escaped.
    fn escape_in_text(&mut self, word: &mut WordBuilder) -> Result<()> {
        match self
            .cursor
            .raw_next()
            .ok_or(UnsupportedSyntax("a backslash at its end"))?
        {
            // A joined line was stepped over already.
            escaped @ ('$' | '`' | '"' | '\\') => word.push(escaped),
            other => {
                word.push('\\');
                word.push(other);
            }
        }
        Ok(())
    }

    /// After the opening `$'`. What would not be a plain character is not read.
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

    /// A printable ASCII character by its number.
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

    /// What the substitutions run in a text that is expanded like a double-quoted one but ends by
    /// itself.
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

/// Whether a `$` stands inside double quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteContext {
    Inside,
    Outside,
}
