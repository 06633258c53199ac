//! Removes quoted file content from error messages.

/// The maximum length of a redacted message, in characters.
const MAX_CHARS: usize = 300;

/// Returns the first line of an error message, shortened to a maximum length. Text between double
/// quotes is removed, because parsers quote values from the parsed file there. Names and paths
/// between backticks are kept.
pub fn redact_quoted(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut pieces = line.split('"');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    while let (Some(_quoted), Some(after)) = (pieces.next(), pieces.next()) {
        text.push_str("\"…\"");
        text.push_str(after);
    }
    let end = text
        .char_indices()
        .nth(MAX_CHARS)
        .map_or(text.len(), |(at, _)| at);
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_quoted_keeps_one_bounded_line() {
        let message =
            "/p/a.md, line 2: invalid type: string \"the text of a file\", expected a list\nmore";
        assert_eq!(
            redact_quoted(message),
            "/p/a.md, line 2: invalid type: string \"…\", expected a list"
        );
        assert_eq!(redact_quoted("cut \"before the end"), "cut ");
        assert_eq!(redact_quoted("`name` is unknown"), "`name` is unknown");
        assert_eq!(redact_quoted(&"ü".repeat(900)).chars().count(), MAX_CHARS);
    }
}
