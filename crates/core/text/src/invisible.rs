//! Finds and reveals invisible characters: bidirectional overrides, zero-width characters, tags.

/// True if the character is invisible or changes the order in which other characters are shown.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}'                      // soft hyphen
        | '\u{34f}'                   // combining grapheme joiner
        | '\u{61c}'                   // Arabic letter mark
        | '\u{115f}' | '\u{1160}'     // Hangul fillers
        | '\u{17b4}' | '\u{17b5}'     // Khmer inherent vowels
        | '\u{180b}'..='\u{180f}'     // Mongolian selectors and separator
        | '\u{200b}'..='\u{200f}'     // zero-width space, joiners, direction marks
        | '\u{2028}'..='\u{202e}'     // line and paragraph separators, embeddings and overrides
        | '\u{2060}'..='\u{206f}'     // word joiner, invisible operators, isolates
        | '\u{3164}' | '\u{ffa0}'     // Hangul fillers
        | '\u{fe00}'..='\u{fe0f}'     // variation selectors
        | '\u{feff}'                  // byte order mark
        | '\u{fff0}'..='\u{fffb}'     // specials up to the interlinear annotations
        | '\u{fffe}' | '\u{ffff}'     // noncharacters
        | '\u{1d173}'..='\u{1d17a}'   // musical controls
        | '\u{e0000}'..='\u{e0fff}'   // tags and further variation selectors
    )
}

/// Replaces invisible characters by their code points, such as `<U+200B>`.
///
/// Joiners between two characters outside ASCII and variation selectors after a suitable character
/// are kept, because scripts and emoji need them. A run of several joiners or selectors could carry
/// hidden data and is replaced.
pub(crate) fn reveal_invisible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut before: Option<char> = None;
    while let Some(c) = chars.next() {
        if !is_invisible(c) || is_needed_between(before, c, chars.peek().copied()) {
            out.push(c);
            before = Some(c);
        } else {
            use std::fmt::Write as _;
            // Writing to a string cannot fail.
            let _ = write!(out, "<U+{:04X}>", u32::from(c));
            before = Some('>');
        }
    }
    out
}

fn is_needed_between(before: Option<char>, c: char, after: Option<char>) -> bool {
    let visible = |c: char| !is_invisible(c) && !c.is_control();
    let Some(before) = before else { return false };
    match c {
        '\u{200c}' | '\u{200d}' => {
            let joins = !before.is_ascii() && (visible(before) || is_variation_selector(before));
            joins && after.is_some_and(|after| !after.is_ascii() && visible(after))
        }
        // Digits, `#` and `*` begin keycap emoji.
        '\u{fe0e}' | '\u{fe0f}' => {
            visible(before) && (!before.is_ascii() || matches!(before, '0'..='9' | '#' | '*'))
        }
        '\u{fe00}'..='\u{fe0d}' => visible(before) && !before.is_ascii(),
        // Variants of ideographs.
        '\u{e0100}'..='\u{e01ef}' => {
            matches!(before, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        }
        _ => false,
    }
}

fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}
