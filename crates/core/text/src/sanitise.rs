//! The one sanitiser: first what a terminal would do with the controls, then what an eye would
//! miss.

use std::borrow::Cow;

use crate::{invisible, terminal};

/// Text that is safe to show in a terminal and honest to show to a model.
///
/// The result holds no control character but `\n` and `\t`. Terminal sequences are removed, other
/// controls are replaced by visible pictures (`␀`), and a line that was overwritten with `\r`, `\b`
/// or cursor moves is as a terminal would show it in the end. Bidirectional overrides, zero-width
/// characters and other invisible controls become `<U+202E>`, except joiners and variation
/// selectors where scripts and emoji need them. Sanitising twice changes nothing more.
///
/// ```
/// assert_eq!(haft_text::sanitise("safe\u{202e}txt.exe"), "safe<U+202E>txt.exe");
/// ```
pub fn sanitise(text: &str) -> Cow<'_, str> {
    let suspicious = |c: char| terminal::is_control(c) || invisible::is_invisible(c);
    if !text.chars().any(suspicious) {
        return Cow::Borrowed(text);
    }
    // The order matters: overwriting changes which characters stand next to each other, and whether
    // a joiner may stay depends on its neighbours.
    let shown = if text.chars().any(terminal::is_control) {
        Cow::Owned(terminal::render(text))
    } else {
        Cow::Borrowed(text)
    };
    Cow::Owned(invisible::reveal(&shown))
}

/// Returns text that a user is asked to approve: safe to show in a terminal or a browser, with
/// nothing left out.
///
/// Unlike [`sanitise`], this function does not apply control sequences. A carriage return or an
/// escape sequence is shown as a visible symbol, so it cannot hide the text before it.
///
/// ```
/// assert_eq!(haft_text::reveal("rm -rf ~\r\x1b[2Kls\n"), "rm -rf ~␍␛[2Kls\n");
/// assert_eq!(haft_text::reveal("a\u{9b}2Kb"), "a<U+009B>2Kb");
/// ```
pub fn reveal(text: &str) -> Cow<'_, str> {
    if !text.contains(terminal::is_control) {
        return sanitise(text);
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
    Cow::Owned(sanitise(&shown).into_owned())
}

/// [`sanitise`] for bytes of unknown encoding: what is not UTF-8 becomes `U+FFFD`.
pub fn sanitise_bytes(bytes: &[u8]) -> String {
    sanitise(&String::from_utf8_lossy(bytes)).into_owned()
}

#[cfg(test)]
mod tests;
