//! Sanitizes text: applies or reveals control characters first, then reveals invisible characters.

use std::borrow::Cow;

use crate::{invisible, terminal};

/// Makes text safe to show in a terminal and reveals hidden characters to a model.
///
/// The result contains no control character but `\n` and `\t`. Terminal sequences are removed, and
/// other controls are replaced by visible symbols (`␀`). A line that was overwritten with `\r`,
/// `\b` or cursor moves reads as a terminal would finally show it. Bidirectional overrides,
/// zero-width characters and other invisible controls become `<U+202E>`, except joiners and
/// variation selectors where scripts and emoji need them. Sanitizing a sanitized text changes
/// nothing.
///
/// ```
/// assert_eq!(haft_text::sanitize("safe\u{202e}txt.exe"), "safe<U+202E>txt.exe");
/// ```
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let suspicious = |c: char| terminal::is_control(c) || invisible::is_invisible(c);
    if !text.chars().any(suspicious) {
        return Cow::Borrowed(text);
    }
    // The order matters: overwriting changes which characters are adjacent, and a joiner stays or
    // goes depending on its neighbors.
    let shown = if text.chars().any(terminal::is_control) {
        Cow::Owned(terminal::render_screen(text))
    } else {
        Cow::Borrowed(text)
    };
    Cow::Owned(invisible::reveal_invisible(&shown))
}

/// Makes text safe to show in a terminal or a browser when a user is asked to approve it. Nothing
/// is omitted.
///
/// Unlike [`sanitize`], this function does not apply control sequences. A carriage return or an
/// escape sequence is shown as a visible symbol, so it cannot hide the text before it.
///
/// ```
/// assert_eq!(haft_text::reveal_controls("rm -rf ~\r\x1b[2Kls\n"), "rm -rf ~␍␛[2Kls\n");
/// assert_eq!(haft_text::reveal_controls("a\u{9b}2Kb"), "a<U+009B>2Kb");
/// ```
pub fn reveal_controls(text: &str) -> Cow<'_, str> {
    if !text.contains(terminal::is_control) {
        return sanitize(text);
    }
    let mut shown = String::with_capacity(text.len());
    for one in text.chars() {
        match u32::from(one) {
            _ if !terminal::is_control(one) => shown.push(one),
            code @ 0..0x20 => shown.extend(char::from_u32(0x2400 + code)),
            0x7F => shown.push('␡'),
            // C1 controls have no symbols in Unicode.
            code => {
                use std::fmt::Write as _;
                // Writing to a string cannot fail.
                let _ = write!(shown, "<U+{code:04X}>");
            }
        }
    }
    Cow::Owned(sanitize(&shown).into_owned())
}

/// Like [`sanitize`], but for bytes of unknown encoding. Invalid UTF-8 becomes `U+FFFD`.
pub fn sanitize_bytes(bytes: &[u8]) -> String {
    sanitize(&String::from_utf8_lossy(bytes)).into_owned()
}

#[cfg(test)]
mod tests;
