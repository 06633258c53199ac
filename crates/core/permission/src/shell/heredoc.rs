//! Here-documents, whose bodies begin after the line that names them.

use super::{Result, ShellParser, ShellWord, UnsupportedSyntax};

/// The error for a here-document inside a substitution: versions of bash disagree on where its body
/// ends.
pub(super) const NESTED_HERE_DOCUMENT: UnsupportedSyntax =
    UnsupportedSyntax("a here-document inside a substitution");

/// Controls whether a here-document may begin in the part of the line that is being parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HereDocuments {
    Allowed,
    Refused,
}

/// A here-document whose body is still to be read.
pub(super) struct PendingHereDocument {
    delimiter: String,
    /// True if the shell expands nothing in the body, because the delimiter is quoted.
    literal: bool,
    strips_tabs: bool,
}

impl ShellParser<'_> {
    /// Parses the delimiter after `<<` or `<<-`.
    pub(super) fn parse_here_document(&mut self, strips_tabs: bool) -> Result<ShellWord> {
        if self.here_documents == HereDocuments::Refused {
            return Err(NESTED_HERE_DOCUMENT);
        }
        self.cursor.skip_blanks();
        let word = self.parse_word()?;
        match word.literal() {
            Some(delimiter)
                if !delimiter.is_empty()
                    && delimiter
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || "_-.!+%".contains(c))
                    && word.source.trim().lines().count() == 1 =>
            {
                let literal = word.source != delimiter;
                self.pending.push(PendingHereDocument {
                    delimiter: delimiter.to_owned(),
                    literal,
                    strips_tabs,
                });
                Ok(word)
            }
            _ => Err(UnsupportedSyntax(
                "a here-document with an unusual delimiter",
            )),
        }
    }

    /// Reads the bodies of pending here-documents, right after a line break.
    pub(super) fn read_here_bodies(&mut self) -> Result<()> {
        if self.here_documents == HereDocuments::Refused && !self.pending.is_empty() {
            return Err(NESTED_HERE_DOCUMENT);
        }
        for pending in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            loop {
                let line = self
                    .cursor
                    .next_raw_line()
                    .ok_or(UnsupportedSyntax("a here-document without its end"))?;
                let line = if pending.strips_tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                if line == pending.delimiter {
                    break;
                }
                // Bash joins such lines before it looks for the delimiter.
                if !pending.literal && line.ends_with('\\') {
                    return Err(UnsupportedSyntax("a here-document with joined lines"));
                }
                body.push_str(line);
                body.push('\n');
            }
            if !pending.literal {
                let scripts = self.parse_text_scripts(&body)?;
                self.here_document_scripts.extend(scripts);
            }
        }
        Ok(())
    }
}
