//! Parses a command line as bash does, or reports that it cannot.
//!
//! Invariant: everything that bash would run, write, or set is in the [`ShellScript`]; a line is
//! parsed completely or not at all, and nothing in it is skipped.
//!
//! Any other syntax is reported as [`UnsupportedSyntax`], and the caller asks the user: arithmetic
//! with names in it, arrays, `${x:=y}`, coprocesses, here-documents inside substitutions, and every
//! form whose meaning depends on the shell's options.

mod ast;
mod cursor;
mod expansion;
mod grammar;
mod heredoc;
mod quoting;
mod redirect;
mod word;

pub(crate) use ast::{
    CompoundCommand, CompoundKind, FunctionDefinition, JobMode, ListOperator, Pipeline, Redirect,
    RedirectKind, ShellCommand, ShellScript, ShellWord, SimpleCommand, WordSplitting, WordValue,
};

pub(crate) use grammar::is_assignment;

use cursor::Cursor;
use heredoc::{HereDocuments, PendingHereDocument};

/// The maximum length of a line in bytes; longer lines are rejected.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// The maximum nesting depth; lines with deeper nesting are rejected.
const MAX_DEPTH: usize = 16;

/// The reason why a line cannot be parsed: a phrase that follows "it has …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnsupportedSyntax(pub(crate) &'static str);

type Result<T> = std::result::Result<T, UnsupportedSyntax>;

/// Parses a whole command line.
pub(crate) fn parse_line(line: &str) -> Result<ShellScript> {
    parse_nested(line, 0)
}

/// Parses one simple command without redirects, the only form that a rule may have.
pub(crate) fn parse_simple_command(line: &str) -> Result<SimpleCommand> {
    let mut script = parse_line(line)?;
    let not_one = UnsupportedSyntax("more or less than one plain command");
    let (Some(item), None) = (script.items.pop(), script.items.pop()) else {
        return Err(not_one);
    };
    if item.mode == JobMode::Background {
        return Err(not_one);
    }
    match <[ShellCommand; 1]>::try_from(item.commands) {
        Ok([ShellCommand::Simple(simple)]) if simple.redirects.is_empty() => Ok(simple),
        Ok(_) | Err(_) => Err(not_one),
    }
}

fn parse_nested(line: &str, depth: usize) -> Result<ShellScript> {
    if line.len() > MAX_LINE_BYTES {
        return Err(UnsupportedSyntax("more than 64 KB"));
    }
    if line.chars().any(is_ambiguous) {
        return Err(UnsupportedSyntax("invisible or control characters"));
    }
    let mut parser = ShellParser::new(line, depth);
    let mut script = parser.parse_script(grammar::ScriptEnd::OfText)?;
    if !parser.pending.is_empty() {
        return Err(UnsupportedSyntax("a here-document without its end"));
    }
    script.items.extend(
        parser
            .here_document_scripts
            .into_iter()
            .flat_map(|stray| stray.items),
    );
    Ok(script)
}

/// True for characters that shells, terminals, and people interpret differently, including control
/// characters that bash uses internally.
fn is_ambiguous(c: char) -> bool {
    /// Letters and marks that have no visible glyph.
    const INVISIBLE: [std::ops::RangeInclusive<char>; 15] = [
        '\u{AD}'..='\u{AD}',
        '\u{34F}'..='\u{34F}',
        '\u{61C}'..='\u{61C}',
        '\u{115F}'..='\u{1160}',
        '\u{17B4}'..='\u{17B5}',
        '\u{180B}'..='\u{180F}',
        '\u{200B}'..='\u{200F}',
        '\u{202A}'..='\u{202E}',
        '\u{2060}'..='\u{206F}',
        '\u{3164}'..='\u{3164}',
        '\u{FE00}'..='\u{FE0F}',
        '\u{FEFF}'..='\u{FEFF}',
        '\u{FFA0}'..='\u{FFA0}',
        '\u{FFF0}'..='\u{FFFD}',
        '\u{E0000}'..='\u{E0FFF}',
    ];
    match c {
        '\n' | '\t' | ' '..='~' => false,
        _ => {
            c.is_control() || c.is_whitespace() || INVISIBLE.iter().any(|range| range.contains(&c))
        }
    }
}

struct ShellParser<'a> {
    cursor: Cursor<'a>,
    depth: usize,
    /// The here-documents whose bodies begin after the next line break.
    pending: Vec<PendingHereDocument>,
    here_documents: HereDocuments,
    /// The scripts that the bodies of here-documents run.
    here_document_scripts: Vec<ShellScript>,
}

impl<'a> ShellParser<'a> {
    fn new(text: &'a str, depth: usize) -> Self {
        Self {
            cursor: Cursor::new(text),
            depth,
            pending: Vec::new(),
            here_documents: HereDocuments::Allowed,
            here_document_scripts: Vec::new(),
        }
    }

    /// Calls `read` with the nesting depth raised by one.
    fn with_deeper_nesting<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(UnsupportedSyntax("too many levels of nesting"));
        }
        self.depth += 1;
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }
}
