//! Parses expansions that begin with `$` or a backquote.

use super::heredoc::{HereDocuments, NESTED_HERE_DOCUMENT};
use super::quoting::QuoteContext;
use super::word::WordBuilder;
use super::{Result, ShellParser, ShellScript, UnsupportedSyntax, grammar, parse_nested};

const UNUSUAL_PARAMETER: UnsupportedSyntax = UnsupportedSyntax("an unusual parameter expansion");

impl ShellParser<'_> {
    /// Parses the expansion after a `$`.
    pub(super) fn parse_dollar(
        &mut self,
        word: &mut WordBuilder,
        quotes: QuoteContext,
    ) -> Result<()> {
        match self.cursor.peek() {
            Some('(') => {
                word.mark_expansion(quotes);
                if self.cursor.eat("((") {
                    return self.parse_arithmetic();
                }
                self.cursor.next();
                word.scripts.push(self.parse_substitution()?);
            }
            Some('{') => {
                self.cursor.next();
                let start = self.cursor.position();
                self.parse_braced_parameter()?;
                let expands_to_several = self.cursor.text_since(start).contains('@');
                word.mark_expansion(if expands_to_several {
                    QuoteContext::Outside
                } else {
                    quotes
                });
            }
            Some('[') => return Err(UnsupportedSyntax("arithmetic")),
            Some('\'') if quotes == QuoteContext::Outside => {
                self.cursor.next();
                self.parse_ansi_quoted(word)?;
            }
            Some('"') if quotes == QuoteContext::Outside => {
                self.cursor.next();
                self.parse_double_quoted(word)?;
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                word.mark_expansion(quotes);
                self.parse_name();
            }
            // Every parameter becomes a separate word, quoted or not.
            Some('@') => {
                self.cursor.next();
                word.mark_expansion(QuoteContext::Outside);
            }
            Some(c) if c.is_ascii_digit() || "*#?-$!".contains(c) => {
                word.mark_expansion(quotes);
                self.cursor.next();
            }
            Some(_) | None => word.push('$'),
        }
        Ok(())
    }

    /// Parses a name: a letter or `_`, followed by letters, `_`, or digits.
    pub(super) fn parse_name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.cursor.peek()
            && (c == '_' || c.is_ascii_alphabetic() || (c.is_ascii_digit() && !name.is_empty()))
        {
            name.push(c);
            self.cursor.next();
        }
        name
    }

    /// Parses the script of a `$(…)` substitution, including the closing `)`.
    pub(super) fn parse_substitution(&mut self) -> Result<ShellScript> {
        let outside = std::mem::replace(&mut self.here_documents, HereDocuments::Refused);
        let script =
            self.with_deeper_nesting(|inner| inner.parse_script(grammar::ScriptEnd::Parenthesis))?;
        self.here_documents = outside;
        Ok(script)
    }

    /// Parses arithmetic after `$((`: numbers and operators only. A name could contain a subscript,
    /// and a subscript can run commands.
    fn parse_arithmetic(&mut self) -> Result<()> {
        let arithmetic = UnsupportedSyntax("arithmetic");
        let mut open = 0_usize;
        loop {
            match self.cursor.next().ok_or(arithmetic)? {
                '(' => open += 1,
                ')' if open > 0 => open -= 1,
                ')' if self.cursor.eat(")") => return Ok(()),
                c if c.is_ascii_digit() || " +-*/%<>=!&|~^?:,".contains(c) => {}
                _ => return Err(arithmetic),
            }
        }
    }

    /// Parses a parameter expansion after `${`.
    fn parse_braced_parameter(&mut self) -> Result<()> {
        self.cursor.eat("#");
        let name = self.parse_name();
        if name.is_empty() {
            match self.cursor.next().ok_or(UNUSUAL_PARAMETER)? {
                c if c.is_ascii_digit() || "@*?-$".contains(c) => {}
                // `${#}` is the number of parameters.
                '}' => return Ok(()),
                _ => return Err(UNUSUAL_PARAMETER),
            }
        }
        if self.cursor.eat("[") && !(self.cursor.eat("@]") || self.cursor.eat("*]")) {
            self.skip_digits();
            if !self.cursor.eat("]") {
                return Err(UNUSUAL_PARAMETER);
            }
        }
        if self.cursor.eat("}") {
            return Ok(());
        }
        self.parse_parameter_operator()?;
        // The operand is accepted only if nothing in it can be expanded.
        loop {
            match self.cursor.next().ok_or(UNUSUAL_PARAMETER)? {
                '}' => return Ok(()),
                c if c.is_ascii_alphanumeric() || "_./*-,: ".contains(c) => {}
                _ => return Err(UNUSUAL_PARAMETER),
            }
        }
    }

    /// Parses the operator of a parameter expansion. Operators that assign, calculate, or expand
    /// twice are rejected.
    fn parse_parameter_operator(&mut self) -> Result<()> {
        const HARMLESS: [&str; 14] = [
            ":-", ":+", ":?", "##", "%%", "//", "^^", ",,", "-", "+", "?", "#", "%", "/",
        ];
        if HARMLESS.iter().any(|operator| self.cursor.eat(operator)) {
            Ok(())
        } else {
            Err(UNUSUAL_PARAMETER)
        }
    }

    fn skip_digits(&mut self) {
        while self.cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.cursor.next();
        }
    }

    /// Parses the script after an opening backquote. Escapes in the script are rejected, because
    /// they would have to be parsed twice.
    pub(super) fn parse_backquoted(
        &mut self,
        word: &mut WordBuilder,
        quotes: QuoteContext,
    ) -> Result<()> {
        word.mark_expansion(quotes);
        let start = self.cursor.position();
        loop {
            match self
                .cursor
                .raw_next()
                .ok_or(UnsupportedSyntax("a backquote without its end"))?
            {
                '`' => break,
                '\\' => return Err(UnsupportedSyntax("an escape between backquotes")),
                _ => {}
            }
        }
        let inside = self.cursor.text_since(start);
        let inside = inside.strip_suffix('`').unwrap_or(inside);
        if inside.contains("<<") {
            return Err(NESTED_HERE_DOCUMENT);
        }
        let script = self.with_deeper_nesting(|inner| parse_nested(inside, inner.depth))?;
        word.scripts.push(script);
        Ok(())
    }
}
