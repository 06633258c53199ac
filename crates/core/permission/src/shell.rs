//! Reads a command line the way bash does, or says that it cannot.
//!
//! Responsible for one thing: that whatever bash would run, write or set is in the [`Script`]. What this grammar does not
//! know is [`NotUnderstood`], and the caller asks the user: arithmetic with names in it, arrays, `${x:=y}`, coprocesses,
//! here-documents inside substitutions and every form whose meaning depends on the shell's options.
//!
//! Invariant: a line is either read whole or not at all; nothing in it is skipped.

mod ast;
mod cursor;
mod expansion;
mod grammar;
mod heredoc;
mod quoting;
mod redirect;
mod word;

pub(crate) use ast::{
    Command, Compound, Function, Item, Joint, Kind, Pace, Redirect, RedirectKind, Script, Simple, Splits, Text, Word,
};

pub(crate) use grammar::is_assignment;

use cursor::Cursor;
use heredoc::{HereDocuments, Pending};

/// Longer lines are not read.
const MAX_BYTES: usize = 64 * 1024;
/// Deeper nesting is not read.
const MAX_DEPTH: usize = 16;

/// Why a line could not be read: a phrase for "it has …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotUnderstood(pub(crate) &'static str);

type Result<T> = std::result::Result<T, NotUnderstood>;

/// Reads a whole command line.
pub(crate) fn parse(line: &str) -> Result<Script> {
    parse_at(line, 0)
}

/// Reads one simple command without redirects, as rules are written.
pub(crate) fn parse_simple(line: &str) -> Result<Simple> {
    let mut script = parse(line)?;
    let one = NotUnderstood("more or less than one plain command");
    let (Some(item), None) = (script.items.pop(), script.items.pop()) else { return Err(one) };
    if item.pace == Pace::Background {
        return Err(one);
    }
    match <[Command; 1]>::try_from(item.pipeline) {
        Ok([Command::Simple(simple)]) if simple.redirects.is_empty() => Ok(simple),
        Ok(_) | Err(_) => Err(one),
    }
}

fn parse_at(line: &str, depth: usize) -> Result<Script> {
    if line.len() > MAX_BYTES {
        return Err(NotUnderstood("more than 64 KB"));
    }
    if line.chars().any(is_odd) {
        return Err(NotUnderstood("invisible or control characters"));
    }
    let mut parser = Parser::over(line, depth);
    let mut script = parser.script(grammar::End::OfText)?;
    if !parser.pending.is_empty() {
        return Err(NotUnderstood("a here-document without its end"));
    }
    script.items.extend(parser.strays.into_iter().flat_map(|stray| stray.items));
    Ok(script)
}

/// Characters that shells, terminals and people see differently. Bash uses some control characters itself.
fn is_odd(one: char) -> bool {
    /// Letters and marks that are not shown.
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
    match one {
        '\n' | '\t' | ' '..='~' => false,
        _ => one.is_control() || one.is_whitespace() || INVISIBLE.iter().any(|range| range.contains(&one)),
    }
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    depth: usize,
    /// Here-documents whose body comes after the next line break.
    pending: Vec<Pending>,
    here_documents: HereDocuments,
    /// What the bodies of here-documents run.
    strays: Vec<Script>,
}

impl<'a> Parser<'a> {
    fn over(text: &'a str, depth: usize) -> Self {
        Self {
            cursor: Cursor::new(text),
            depth,
            pending: Vec::new(),
            here_documents: HereDocuments::Taken,
            strays: Vec::new(),
        }
    }

    /// One level further down.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(NotUnderstood("too many levels of nesting"));
        }
        self.depth += 1;
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }
}
