//! Parses redirects.

use super::{Redirect, RedirectKind, Result, ShellParser, ShellWord, UnsupportedSyntax};

impl ShellParser<'_> {
    /// Parses a redirect, with the descriptor number before it, if a redirect begins at the cursor.
    pub(super) fn parse_redirect(&mut self) -> Result<Option<Redirect>> {
        if self.cursor.starts_with("<(") || self.cursor.starts_with(">(") {
            return Ok(None);
        }
        let mut ahead = self.cursor.clone();
        while ahead.peek().is_some_and(|c| c.is_ascii_digit()) {
            ahead.next();
        }
        let digits = ahead.position() - self.cursor.position();
        let numbered = digits > 0;
        if !matches!(ahead.peek(), Some('<' | '>')) && (numbered || !ahead.starts_with("&>")) {
            return Ok(None);
        }
        // Bash would treat such a large number as a separate word.
        if digits > 3 {
            return Err(UnsupportedSyntax("a descriptor with a large number"));
        }
        self.cursor = ahead;
        self.parse_operator_and_target().map(Some)
    }

    fn parse_operator_and_target(&mut self) -> Result<Redirect> {
        use RedirectKind::{Inner, Read, Write};
        // Longer operators first.
        for (operator, kind) in [
            ("<<<", Inner),
            ("&>>", Write),
            ("&>", Write),
            (">>", Write),
            (">|", Write),
            ("<>", Write),
        ] {
            if self.cursor.eat(operator) {
                return Ok(Redirect {
                    kind,
                    target: self.parse_target()?,
                });
            }
        }
        if self.cursor.eat("<<-") {
            return Ok(Redirect {
                kind: Inner,
                target: self.parse_here_document(true)?,
            });
        }
        if self.cursor.eat("<<") {
            return Ok(Redirect {
                kind: Inner,
                target: self.parse_here_document(false)?,
            });
        }
        if self.cursor.eat("<&") {
            let target = self.parse_target()?;
            if !is_descriptor(&target) {
                return Err(UnsupportedSyntax(
                    "a copy of a descriptor that is not a number",
                ));
            }
            return Ok(Redirect {
                kind: Inner,
                target,
            });
        }
        if self.cursor.eat(">&") {
            let target = self.parse_target()?;
            let kind = if is_descriptor(&target) { Inner } else { Write };
            return Ok(Redirect { kind, target });
        }
        let kind = if self.cursor.eat(">") { Write } else { Read };
        if kind == Read {
            self.cursor.eat("<");
        }
        Ok(Redirect {
            kind,
            target: self.parse_target()?,
        })
    }

    fn parse_target(&mut self) -> Result<ShellWord> {
        self.cursor.skip_blanks();
        self.parse_word()
    }
}

/// True if the target of a redirect is a descriptor: a number, `-`, or a number followed by `-`.
fn is_descriptor(target: &ShellWord) -> bool {
    let text = target.literal().unwrap_or_default();
    let digits = text.strip_suffix('-').unwrap_or(text);
    !text.is_empty() && target.source == text && digits.chars().all(|c| c.is_ascii_digit())
}
