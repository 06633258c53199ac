//! Finds the words of a `sed` command that could run a program or write a file.

use super::risks::{Risk, RiskPosition};
use crate::shell::ShellWord;

const MAY_RUN_OR_WRITE: &str = "could make `sed` write a file or run a program";

pub(super) fn find_risks(words: &[ShellWord]) -> Vec<Risk> {
    const HARMLESS_LONG_OPTIONS: [&str; 10] = [
        "--quiet",
        "--silent",
        "--regexp-extended",
        "--separate",
        "--unbuffered",
        "--null-data",
        "--zero-terminated",
        "--posix",
        "--debug",
        "--sandbox",
    ];
    let mut risks = Vec::new();
    let mut note = |at: usize| {
        risks.push(Risk {
            at: RiskPosition::Word(at),
            what: MAY_RUN_OR_WRITE,
        });
    };
    let mut at = 1;
    let mut has_script = false;
    while let Some(word) = words.get(at) {
        let text = match word.literal() {
            Some(text) if text.len() > 1 && text.starts_with('-') => text,
            Some(text) => {
                // The first operand is the script unless an option gave one; the others are files
                // to read.
                if !has_script && !is_harmless(text) {
                    note(at);
                }
                has_script = true;
                at += 1;
                continue;
            }
            None => {
                if !has_script || super::risks::may_be_option(word) {
                    note(at);
                }
                has_script = true;
                at += 1;
                continue;
            }
        };
        if let Some(script) = text.strip_prefix("--expression=") {
            has_script = true;
            if !is_harmless(script) {
                note(at);
            }
        } else if text.starts_with("--") {
            if !HARMLESS_LONG_OPTIONS.contains(&text) {
                note(at);
            }
        } else {
            let letters = text
                .trim_start_matches('-')
                .trim_start_matches(|c| "nErsuz".contains(c));
            match letters.strip_prefix('e') {
                _ if letters.is_empty() => {}
                Some(attached) => {
                    has_script = true;
                    let script = if attached.is_empty() {
                        words.get(at + 1).and_then(ShellWord::literal)
                    } else {
                        Some(attached)
                    };
                    at += usize::from(attached.is_empty());
                    if !script.is_some_and(is_harmless) {
                        note(at);
                    }
                }
                None => note(at),
            }
        }
        at += 1;
    }
    risks
}

/// True if a script consists only of commands that print, delete, and substitute.
pub(super) fn is_harmless(script: &str) -> bool {
    SedReader { rest: script }.read_script().is_some()
}

/// Parses a `sed` script. Every method returns `None` if it finds a command that is not known to be
/// harmless.
struct SedReader<'a> {
    rest: &'a str,
}

impl SedReader<'_> {
    fn read_script(&mut self) -> Option<()> {
        loop {
            self.rest = self
                .rest
                .trim_start_matches([' ', '\t', '\n', ';', '{', '}']);
            if self.rest.is_empty() {
                return Some(());
            }
            self.read_addresses()?;
            self.read_command()?;
        }
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn skip_digits(&mut self) -> bool {
        let rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let any = rest.len() != self.rest.len();
        self.rest = rest;
        any
    }

    fn read_addresses(&mut self) -> Option<()> {
        if self.read_address()? {
            self.skip_blanks();
            if self.eat(',') {
                self.skip_blanks();
                let _ = self.eat('+') || self.eat('~');
                if !self.read_address()? {
                    return None;
                }
            }
        }
        self.skip_blanks();
        while self.eat('!') {
            self.skip_blanks();
        }
        Some(())
    }

    /// Parses an optional address. Returns true if there was one, and `None` if it is not
    /// supported.
    fn read_address(&mut self) -> Option<bool> {
        if self.skip_digits() {
            if self.eat('~') && !self.skip_digits() {
                return None;
            }
            return Some(true);
        }
        if self.eat('$') {
            return Some(true);
        }
        if self.eat('/') {
            self.skip_until('/')?;
            self.rest = self.rest.trim_start_matches(['I', 'M']);
            return Some(true);
        }
        Some(false)
    }

    /// Moves the cursor to the position after the next delimiter that is not escaped.
    fn skip_until(&mut self, delimiter: char) -> Option<()> {
        loop {
            match self.next_char()? {
                '\\' => {
                    self.next_char().filter(|c| *c != '\n')?;
                }
                '[' => self.skip_set(delimiter)?,
                '\n' => return None,
                c if c == delimiter => return Some(()),
                _ => {}
            }
        }
    }

    /// Skips a set of characters in brackets. Returns `None` if the set contains a delimiter or a
    /// backslash, which versions of `sed` interpret differently.
    fn skip_set(&mut self, delimiter: char) -> Option<()> {
        self.eat('^');
        self.eat(']');
        loop {
            match self.next_char()? {
                ']' => return Some(()),
                '\\' | '\n' => return None,
                c if c == delimiter => return None,
                _ => {}
            }
        }
    }

    fn read_command(&mut self) -> Option<()> {
        match self.next_char()? {
            'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'l' | '=' => {}
            'q' | 'Q' => {
                self.skip_blanks();
                self.skip_digits();
            }
            // Closed by one of the separators that the loop skips.
            '{' => return Some(()),
            's' => {
                let delimiter = self.next_char().filter(|c| "/|,#:!@%_+".contains(*c))?;
                self.skip_until(delimiter)?;
                self.skip_until(delimiter)?;
                self.rest = self
                    .rest
                    .trim_start_matches(|c: char| "gpiIMm".contains(c) || c.is_ascii_digit());
            }
            'y' => {
                let delimiter = self.next_char().filter(|c| "/|,#".contains(*c))?;
                self.skip_until(delimiter)?;
                self.skip_until(delimiter)?;
            }
            _ => return None,
        }
        self.skip_blanks();
        let over = self.rest.is_empty() || self.rest.starts_with(['\n', ';', '}']);
        over.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn is_harmless_accepts_scripts_that_only_edit_the_stream() {
        for script in [
            "p",
            "1,5p",
            "$d",
            "/a b/d",
            "s/a/b/",
            "s|a|b|g;s/c/d/2p",
            "2q",
            "/x/,/y/p",
            "1!G;h;$!d",
            "/a/{p;d}",
            "y/ab/cd/",
            "s/[0-9]*//g",
            "/^[^]]/p",
            "",
        ] {
            assert!(is_harmless(script), "{script}");
        }
    }

    #[test]
    fn is_harmless_rejects_scripts_that_run_write_or_do_not_parse() {
        for script in [
            "w out",
            "1w out",
            "s/a/b/w out",
            "s/a/b/gw out",
            "s/a/b/e",
            "s/a/rm x/ge",
            "e",
            "1e rm x",
            "$!e id",
            "r /etc/passwd",
            "R x",
            "W x",
            "a text",
            "i\\\nx",
            "c\\x",
            "s/[/]/b/;e",
            "s/a\\/b/c/e",
            "b x",
            ":x",
            "tx",
            "s/a/b",
            "p;e id",
            "{e id}",
            "/x/{s/a/b/w out\n}",
            "1~e",
            "s/a/b/\ne id",
            "F",
            "z",
            "v",
            "s\na\nb\ne",
            "/a/,e id",
            "#n",
            "y/a/b/e",
            "sxaxbxe",
            "p e",
        ] {
            assert!(!is_harmless(script), "{script}");
        }
    }
}
