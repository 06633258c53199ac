//! Shows text exactly, for approvals: every character is visible, and different texts look
//! different.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

use crate::invisible;

/// The maximum number of combining marks that are shown after a character. Further marks could
/// cover the text around them.
const MAX_MARKS: usize = 3;

/// Returns the text in a form that shows every character, for users who decide whether it may run.
///
/// Line breaks stay line breaks, except for one at the end of the text, which becomes `␊`. Other
/// control characters become symbols such as `␛`. Characters that have no visible form become code
/// points such as `<U+202E>`: invisible characters, spaces other than the ordinary one, the last
/// space of a line, and combining marks without a character to combine with. Text that looks like
/// such a symbol or code point is written as code points, too, so that different texts never have
/// equal forms.
///
/// Showing a shown text again changes it: this function must be called once.
///
/// ```
/// use haft_text::show_exactly;
///
/// assert_eq!(show_exactly("rm -rf ~\r\x1b[2Kls\n"), "rm -rf ~␍␛[2Kls␊");
/// assert_eq!(show_exactly("a\u{a0}b \n<U+00A0>"), "a<U+00A0>b<U+0020>\n<U+003C>U+00A0>");
/// ```
pub fn show_exactly(text: &str) -> Cow<'_, str> {
    let (body, last_break) = match text.strip_suffix('\n') {
        Some(body) => (body, "␊"),
        None => (text, ""),
    };
    if last_break.is_empty() && is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (number, line) in body.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        show_line(line, &mut out);
    }
    out.push_str(last_break);
    Cow::Owned(out)
}

/// Like [`show_exactly`], but for the content of files: tabs at the start of a line and the line
/// break at the end of the text are kept.
pub fn show_content_exactly(text: &str) -> Cow<'_, str> {
    show_indented_lines(text, |_| 0)
}

/// Like [`show_content_exactly`], but for unified diffs, in which a sign precedes each line.
pub fn show_diff_exactly(diff: &str) -> Cow<'_, str> {
    show_indented_lines(diff, |line| usize::from(line.starts_with(['+', '-', ' '])))
}

/// Shows a text line by line. The first bytes of a line, whose number `sign_bytes` returns, and the
/// tabs that follow are kept.
fn show_indented_lines(text: &str, sign_bytes: impl Fn(&str) -> usize) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let (sign, rest) = line.split_at(sign_bytes(line));
        let content = rest.trim_start_matches('\t');
        out.push_str(sign);
        out.push_str(&rest[..rest.len() - content.len()]);
        show_line(content, &mut out);
    }
    Cow::Owned(out)
}

/// Returns true if the text contains only printable ASCII characters and line breaks, and nothing
/// that [`show_exactly`] changes.
fn is_plain(text: &str) -> bool {
    let is_plain_byte = |byte: u8| matches!(byte, b' '..=b'~' | b'\n');
    text.bytes().all(is_plain_byte)
        && !text.contains(" \n")
        && !text.ends_with(' ')
        && !text.contains("<U+")
}

fn show_line(line: &str, out: &mut String) {
    let mut marks = MAX_MARKS;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        let is_last_space = c == ' ' && rest.as_str().is_empty();
        let is_mark = !c.is_control() && c.width() == Some(0);
        if !is_mark {
            marks = 0;
        } else if !invisible::is_invisible(c) {
            marks += 1;
        }
        match u32::from(c) {
            code @ 0..0x20 => out.extend(char::from_u32(0x2400 + code)),
            0x7F => out.push('␡'),
            code if is_last_space
                || is_mark && marks > MAX_MARKS
                || needs_code_point(c)
                || c == '<' && is_code_point_tail(rest.as_str()) =>
            {
                // Writing to a string cannot fail.
                let _ = write!(out, "<U+{code:04X}>");
                // A mark has nothing to combine with here.
                marks = MAX_MARKS;
            }
            _ => {
                out.push(c);
                if c.is_whitespace() {
                    marks = MAX_MARKS;
                }
            }
        }
    }
}

/// True if a character has no visible form of its own, or looks like the symbol of a control
/// character.
fn needs_code_point(c: char) -> bool {
    c.is_control()
        || invisible::is_invisible(c)
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{2400}'..='\u{2426}'         // symbols of control characters
            | '\u{2800}'                    // a Braille pattern without dots
            | '\u{fdd0}'..='\u{fdef}'       // noncharacters
            | '\u{13430}'..='\u{1345f}'     // Egyptian hieroglyph controls
            | '\u{1bca0}'..='\u{1bca3}'     // shorthand controls
            | '\u{1d159}'                   // a musical symbol without a glyph
        )
        || u32::from(c) & 0xFFFE == 0xFFFE
}

/// True if `text` continues `<` to something that looks like a code point.
fn is_code_point_tail(text: &str) -> bool {
    text.strip_prefix("U+")
        .and_then(|rest| rest.split_once('>'))
        .is_some_and(|(digits, _)| {
            (4..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sanitize;

    /// Restores the text from its shown form.
    fn restore(shown: &str) -> String {
        let mut out = String::new();
        let mut rest = shown;
        while let Some(c) = rest.chars().next() {
            if let Some(tail) = rest.strip_prefix("<U+")
                && let Some((digits, after)) = tail.split_once('>')
                && (4..=6).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                && let Ok(code) = u32::from_str_radix(digits, 16)
            {
                out.extend(char::from_u32(code));
                rest = after;
                continue;
            }
            out.push(match c {
                '\u{2400}'..='\u{241f}' => char::from_u32(u32::from(c) - 0x2400).unwrap(),
                '␡' => '\u{7f}',
                other => other,
            });
            rest = &rest[c.len_utf8()..];
        }
        out
    }

    #[test]
    fn show_exactly_shows_every_character() {
        for (text, shown) in [
            ("", ""),
            ("ls -la | wc", "ls -la | wc"),
            ("a\nb", "a\nb"),
            ("a\n", "a␊"),
            ("\n", "␊"),
            ("a\n\n", "a\n␊"),
            ("a\tb", "a␉b"),
            ("a\r\nb", "a␍\nb"),
            ("a\0\u{8}\u{7f}\u{9b}", "a␀␈␡<U+009B>"),
            ("a  \nb ", "a <U+0020>\nb<U+0020>"),
            ("a\u{3000}b\u{2003}c", "a<U+3000>b<U+2003>c"),
            ("safe\u{202e}txt.exe", "safe<U+202E>txt.exe"),
            ("a\u{200d}b", "a<U+200D>b"),
            ("❤\u{fe0f}", "❤<U+FE0F>"),
            ("␛[2K", "<U+241B>[2K"),
            ("<U+202E>", "<U+003C>U+202E>"),
            ("<U+20>", "<U+20>"),
            ("é e\u{301} \u{301}", "é e\u{301} <U+0301>"),
            ("\u{301}", "<U+0301>"),
            (
                "a\u{301}\u{301}\u{301}\u{301}",
                "a\u{301}\u{301}\u{301}<U+0301>",
            ),
            ("中文 ключ", "中文 ключ"),
            ("\u{10ffff}", "<U+10FFFF>"),
        ] {
            assert_eq!(show_exactly(text), shown, "{text:?}");
        }
    }

    #[test]
    fn show_diff_keeps_signs_and_indentation() {
        let diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n \n-\told\n+\tnew\tx \n";
        assert_eq!(
            show_diff_exactly(diff),
            "--- a\n+++ b\n@@ -1,2 +1,2 @@\n \n-\told\n+\tnew␉x<U+0020>\n"
        );
        assert_eq!(
            show_content_exactly("\tall: x\n\u{1b}[2K\n"),
            "\tall: x\n␛[2K\n"
        );
    }

    proptest! {
        #[test]
        fn shown_text_can_be_restored(text in "(?s).*", hostile in "[ \t\n\r\u{1b}<U+0-9A-F>\u{202e}\u{a0}\u{301}␛␊e]*") {
            for text in [text, hostile] {
                let shown = show_exactly(&text);
                prop_assert_eq!(&restore(&shown), &text);
                // What shows text to users sanitizes it again.
                prop_assert_eq!(sanitize(&shown), shown.as_ref());
                let hidden = |c: char| c != '\n' && (c.is_control() || invisible::is_invisible(c));
                prop_assert!(!shown.contains(hidden));
                for content in [show_content_exactly(&text), show_diff_exactly(&text)] {
                    prop_assert!(!content.contains(|c: char| c != '\t' && hidden(c)));
                }
            }
        }
    }
}
