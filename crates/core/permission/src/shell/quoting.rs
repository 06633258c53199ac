//! Single, double, and ANSI-C quotes, and the escapes in them.

use super::word::WordBuilder;
use super::{Result, ShellParser, ShellScript, UnsupportedSyntax};

impl ShellParser<'_> {
    /// Parses the text after an opening `'`.
    pub(super) fn parse_single_quoted(&mut self, word: &mut WordBuilder) -> Result<()> {
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
    pub(super) fn parse_double_quoted(&mut self, word: &mut WordBuilder) -> Result<()> {
        loop {
            match self
                .cursor
                .next()
                .ok_or(UnsupportedSyntax("a quote without its end"))?
            {
                '"' => return Ok(()),
                '\\' => self.parse_text_escape(word)?,
                '$' => self.parse_dollar(word, QuoteContext::Inside)?,
                '`' => self.parse_backquoted(word, QuoteContext::Inside)?,
                other => word.push(other),
            }
        }
    }

    /// Parses a backslash in a text, such as a double-quoted one, in which only some characters can
    /// be escaped.
    fn parse_text_escape(&mut self, word: &mut WordBuilder) -> Result<()> {
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
    pub(super) fn parse_ansi_quoted(&mut self, word: &mut WordBuilder) -> Result<()> {
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
                'x' => word.push(self.parse_char_code(16, 2).ok_or(unusual)?),
                'u' => word.push(self.parse_char_code(16, 4).ok_or(unusual)?),
                'U' => word.push(self.parse_char_code(16, 8).ok_or(unusual)?),
                '0'..='7' => {
                    self.cursor.step_back_one_byte();
                    word.push(self.parse_char_code(8, 3).ok_or(unusual)?);
                }
                _ => return Err(unusual),
            }
        }
    }

    /// Parses the code of a printable ASCII character in at most `max_digits` digits.
    fn parse_char_code(&mut self, radix: u32, max_digits: usize) -> Option<char> {
        let mut code = 0_u32;
        let mut digits = 0;
        while digits < max_digits
            && let Some(digit) = self.cursor.raw_peek().and_then(|c| c.to_digit(radix))
        {
            code = code.checked_mul(radix)?.checked_add(digit)?;
            self.cursor.raw_next();
            digits += 1;
        }
        char::from_u32(code).filter(|c| digits > 0 && matches!(c, ' '..='~'))
    }

    /// Returns the scripts of the substitutions in a text that the shell expands like a
    /// double-quoted text, such as the body of a here-document.
    pub(super) fn parse_text_scripts(&self, text: &str) -> Result<Vec<ShellScript>> {
        let mut inner = ShellParser::new(text, self.depth);
        let mut word = WordBuilder::default();
        inner.with_deeper_nesting(|inner| {
            while let Some(c) = inner.cursor.next() {
                match c {
                    '\\' => inner.parse_text_escape(&mut word)?,
                    '$' => inner.parse_dollar(&mut word, QuoteContext::Inside)?,
                    '`' => inner.parse_backquoted(&mut word, QuoteContext::Inside)?,
                    other => word.push(other),
                }
            }
            Ok(())
        })?;
        Ok(word.scripts)
    }
}

/// Records whether a `$` is inside or outside double quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteContext {
    Inside,
    Outside,
}
