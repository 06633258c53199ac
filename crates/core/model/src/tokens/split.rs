//! Splits a text into pieces, exactly as the pattern of `o200k_base` does; no token crosses the end
//! of a piece.
//!
//! The alternatives of the pattern are tried in this order at each position:
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! \p{N}{1,3}
//!  ?[^\s\p{L}\p{N}]+[\r\n/]*
//! \s*[\r\n]+
//! \s+(?!\S)
//! \s+
//! ```
//! The pattern is implemented by hand because a regular expression takes time to compile and memory
//! to run, and this one needs an engine that backtracks. Where the pattern would back up, the scan
//! remembers the last position it could back up to, so no character is visited more than a few
//! times.
//!
//! Invariant: the concatenated pieces of a text are the text; no piece is empty.

use super::layout::class::{CASELESS, LOWER, MARK, NEWLINE, NUMBER, OTHER, SPACE, UPPER};
use super::table;

/// The pattern `[^\r\n\p{L}\p{N}]`: the classes of the character that may precede the letters of a
/// word.
const LEAD: u8 = MARK | SPACE | OTHER;
/// The pattern `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`: the classes in the upper-case part at the
/// beginning of a word.
const HEAD: u8 = UPPER | CASELESS | MARK;
/// The pattern `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`: the classes in the lower-case part at the end of a
/// word.
const TAIL: u8 = LOWER | CASELESS | MARK;

/// Iterates over the pieces into which a text is split before tokenization.
pub(super) struct TokenPieces<'a> {
    rest: &'a str,
}

impl<'a> TokenPieces<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }
}

impl<'a> Iterator for TokenPieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (first, after) = next_class(self.rest, 0)?;
        let end = match_word(self.rest, first, after)
            .or_else(|| match_number(self.rest))
            .or_else(|| match_punctuation(self.rest))
            .unwrap_or_else(|| match_space(self.rest));
        let (piece, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(piece)
    }
}

/// Returns the end of a match of the first two alternatives. Their case rules amount to one scan
/// over [`HEAD`]:
/// - at a lower-case letter the scan stops, and the word continues from there;
/// - else the word ends after the last scanned character that is also in [`TAIL`];
/// - else, if all scanned characters are upper case, the second alternative matches them all.
fn match_word(text: &str, first: u8, after: usize) -> Option<usize> {
    let start = if first & LEAD == 0 { 0 } else { after };
    let mut at = start;
    let mut last_tail = None;
    while let Some((class, after)) = next_class(text, at) {
        if class & HEAD == 0 {
            if class == LOWER {
                return Some(match_contraction(text, skip_class(text, after, TAIL)));
            }
            break;
        }
        at = after;
        if class & TAIL != 0 {
            last_tail = Some(at);
        }
    }
    let end = match last_tail {
        Some(end) => end,
        // A mark is not taken as the lead if it can be the word by itself: the first alternative
        // precedes the second.
        None if first == MARK => after,
        None if at > start => at,
        None => return None,
    };
    Some(match_contraction(text, end))
}

/// Returns the end of a match of `(?i:'s|'t|'re|'ve|'m|'ll|'d)?` at `at`. Because case is ignored,
/// `ſ` (U+017F) counts as an `s`.
fn match_contraction(text: &str, at: usize) -> usize {
    let letters = match &text.as_bytes()[at..] {
        [
            b'\'',
            b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D',
            ..,
        ] => 1,
        [b'\'', b'r' | b'R' | b'v' | b'V', b'e' | b'E', ..]
        | [b'\'', b'l' | b'L', b'l' | b'L', ..] => 2,
        [b'\'', 0xC5, 0xBF, ..] => "ſ".len(),
        _ => return at,
    };
    at + 1 + letters
}

/// Returns the end of a match of `\p{N}{1,3}`.
fn match_number(text: &str) -> Option<usize> {
    let mut at = 0;
    for _ in 0..3 {
        match next_class(text, at) {
            Some((NUMBER, after)) => at = after,
            _ => break,
        }
    }
    (at > 0).then_some(at)
}

/// Returns the end of a match of ` ?[^\s\p{L}\p{N}]+[\r\n/]*`.
fn match_punctuation(text: &str) -> Option<usize> {
    let start = usize::from(text.starts_with(' '));
    let end = skip_class(text, start, OTHER | MARK);
    let close = text.as_bytes()[end..]
        .iter()
        .take_while(|byte| matches!(byte, b'\r' | b'\n' | b'/'))
        .count();
    (end > start).then_some(end + close)
}

/// Returns the end of a match of the last three alternatives: white space up to its last line
/// break; else all but the last character, which belongs to the next piece; else all of it.
fn match_space(text: &str) -> usize {
    let mut at = 0;
    let mut last = 0;
    let mut newline = None;
    while let Some((class, after)) = next_class(text, at)
        && class & (SPACE | NEWLINE) != 0
    {
        (last, at) = (at, after);
        if class == NEWLINE {
            newline = Some(after);
        }
    }
    match newline {
        Some(end) => end,
        None if at < text.len() && last > 0 => last,
        None => at,
    }
}

/// Returns the end of a run of characters whose classes are in `set`.
fn skip_class(text: &str, from: usize, set: u8) -> usize {
    let mut at = from;
    while let Some((class, after)) = next_class(text, at)
        && class & set != 0
    {
        at = after;
    }
    at
}

/// Returns the class of the character at `at`, and the index of the next character.
fn next_class(text: &str, at: usize) -> Option<(u8, usize)> {
    let byte = *text.as_bytes().get(at)?;
    if byte.is_ascii() {
        return Some((table::ascii_class(byte), at + 1));
    }
    let character = text[at..].chars().next()?;
    Some((table::char_class(character), at + character.len_utf8()))
}
