//! Splits a text into lines and their line ends, and finds the line ends that a file uses.

/// A line and its line end: `\n`, `\r\n`, `\r`, or nothing at the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextLine<'a> {
    pub(crate) text: &'a str,
    pub(crate) end: &'a str,
}

/// Splits a text into lines. Concatenating the text and the line end of each line gives the
/// original text.
///
/// A lone carriage return ends a line only in a file without line feeds, as written by old
/// Macintosh programs. Elsewhere, it is a character of its line.
pub(crate) fn split_lines(text: &str) -> Vec<TextLine<'_>> {
    if has_cr_line_ends(text) {
        return text
            .split_inclusive('\r')
            .map(|whole| split_line_end(whole, whole.strip_suffix('\r').unwrap_or(whole).len()))
            .collect();
    }
    text.split_inclusive('\n')
        .map(|whole| {
            let len = whole.strip_suffix('\n').map_or(whole.len(), |body| {
                body.strip_suffix('\r').unwrap_or(body).len()
            });
            split_line_end(whole, len)
        })
        .collect()
}

/// True if the lines of a file end with carriage returns.
pub(crate) fn has_cr_line_ends(file: &str) -> bool {
    file.contains('\r') && !file.contains('\n')
}

/// Replaces each symbol `␍` with a carriage return, if the file contains carriage returns: the
/// model gets them as this symbol and uses the symbol in its edits.
pub(crate) fn restore_carriage_returns(text: &str, file: &str) -> String {
    if file.contains('\r') && !file.contains('␍') {
        text.replace('␍', "\r")
    } else {
        text.to_owned()
    }
}

fn split_line_end(whole: &str, body: usize) -> TextLine<'_> {
    let (text, end) = whole.split_at_checked(body).unwrap_or((whole, ""));
    TextLine { text, end }
}

/// Returns the line end of the line with index `at`, or of a line near it if this line has none.
pub(crate) fn line_end_near<'a>(lines: &[TextLine<'a>], at: usize) -> &'a str {
    let here = lines.get(at).map(|line| line.end);
    let before = at
        .checked_sub(1)
        .and_then(|before| lines.get(before))
        .map(|line| line.end);
    let anywhere = lines.first().map(|line| line.end);
    [here, before, anywhere]
        .into_iter()
        .flatten()
        .find(|end| !end.is_empty())
        .unwrap_or("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split_texts(text: &str) -> Vec<&str> {
        split_lines(text).iter().map(|line| line.text).collect()
    }

    #[test]
    fn split_ends_lines_at_carriage_returns_only_without_other_ends() {
        assert_eq!(split_texts("a\nb\r\nc"), ["a", "b", "c"]);
        assert_eq!(split_texts("a\rb\r"), ["a", "b"]);
        assert_eq!(split_texts("a\rb\n"), ["a\rb"]);
        assert_eq!(split_texts("\r\r"), ["", ""]);
        assert!(split_texts("").is_empty());
    }

    proptest! {
        #[test]
        fn split_loses_no_text(text in "([ab]{0,2}(\n|\r\n|\r)){0,6}[ab]{0,2}") {
            let joined: String = split_lines(&text).iter().flat_map(|line| [line.text, line.end]).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
