//! Measures text in terminal columns.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const ELLIPSIS: char = '…';

/// Returns the number of terminal columns that a sanitized one-line text occupies.
pub fn display_width(text: &str) -> usize {
    text.width()
}

/// Truncates the text to at most `columns` columns. An ellipsis marks a cut.
///
/// ```
/// assert_eq!(haft_text::truncate_to_width("a long name", 7), "a long…");
/// ```
pub fn truncate_to_width(text: &str, columns: usize) -> Cow<'_, str> {
    if display_width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let Some(room) = columns.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let mut taken = 0;
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        taken += c.width().unwrap_or(1);
        if taken > room {
            end = at;
            break;
        }
    }
    // A sequence can be wider than the sum of its characters.
    let mut kept = &text[..end];
    while display_width(kept) > room || kept.ends_with('\u{200d}') {
        let mut chars = kept.chars();
        chars.next_back();
        kept = chars.as_str();
    }
    let mut out = String::with_capacity(kept.len() + ELLIPSIS.len_utf8());
    out.push_str(kept);
    out.push(ELLIPSIS);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn truncate_to_width_keeps_short_text() {
        assert_eq!(truncate_to_width("abc", 3), "abc");
        assert_eq!(truncate_to_width("", 0), "");
    }

    #[test]
    fn width_counts_wide_characters_twice() {
        assert_eq!(display_width("日本"), 4);
        assert_eq!(truncate_to_width("日本語", 5), "日本…");
        assert_eq!(truncate_to_width("日本語", 4), "日…");
        assert_eq!(truncate_to_width("日本語", 1), "…");
        assert_eq!(truncate_to_width("日本語", 0), "");
    }

    proptest! {
        #[test]
        fn truncate_to_width_never_exceeds_the_columns(text in "\\PC{0,40}", columns in 0usize..30) {
            prop_assert!(display_width(&truncate_to_width(&text, columns)) <= columns);
        }
    }
}
