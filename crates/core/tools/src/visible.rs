//! Makes control characters in file content visible, so that no content can move the cursor, be
//! hidden, or be omitted.

use std::borrow::Cow;

/// Makes the control characters of one line of a file visible. Escape sequences and lone carriage
/// returns are shown instead of interpreted as by a terminal, because they are part of the file's
/// content.
pub fn reveal_line(text: &str) -> Cow<'_, str> {
    if text.contains(is_control) {
        let pictured: String = text
            .chars()
            .map(|one| {
                if is_control(one) {
                    control_symbol(one)
                } else {
                    one
                }
            })
            .collect();
        Cow::Owned(haft_text::sanitize(&pictured).into_owned())
    } else {
        haft_text::sanitize(text)
    }
}

fn is_control(one: char) -> bool {
    one.is_control() && one != '\t'
}

/// Returns the Unicode symbol of a control character. C1 controls have no symbols and become
/// `U+FFFD`.
fn control_symbol(one: char) -> char {
    match u32::from(one) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{FFFD}'),
        0x7F => '␡',
        _ => '\u{FFFD}',
    }
}

/// Returns the longest prefix of at most `bytes` bytes that ends between characters.
pub(crate) fn prefix_within(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_shows_control_characters() {
        assert_eq!(reveal_line("plain\ttext é"), "plain\ttext é");
        assert_eq!(reveal_line("\x1b[31mred\rover\x08\x7f"), "␛[31mred␍over␈␡");
        assert_eq!(reveal_line("a\u{85}b"), "a\u{FFFD}b");
        assert!(!reveal_line("safe\u{202e}exe").contains('\u{202e}'));
    }

    #[test]
    fn prefix_never_splits_a_character() {
        assert_eq!(prefix_within("aé", 2), "a");
        assert_eq!(prefix_within("aé", 3), "aé");
        assert_eq!(prefix_within("aé", 9), "aé");
    }
}
