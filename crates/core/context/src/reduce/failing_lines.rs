//! Lines that every reduction of output keeps: those that name a failing test.

/// The maximum number of characters kept of a line that reports a failing test.
const MAX_LINE_CHARS: usize = 300;
/// The maximum number of lines kept that report a failing test.
const MAX_FAILING_LINES: usize = 10;

/// Returns the lines of `output` that report a failing test, shortened to a bounded length. These
/// lines survive every reduction of a result.
pub(crate) fn find_failing_lines(output: &str) -> impl Iterator<Item = String> {
    let fails = |line: &&str| {
        line.ends_with("FAILED") || line.starts_with("FAILED ") || line.starts_with("--- FAIL")
    };
    output
        .lines()
        .map(str::trim)
        .filter(fails)
        .take(MAX_FAILING_LINES)
        .map(bound_line)
}

/// Joins the lines of a text and shortens the result to a bounded length.
pub(crate) fn bound_line(text: &str) -> String {
    cut_to_line(text, MAX_LINE_CHARS)
}

/// Joins the lines of a text and shortens the result to at most `max_chars` characters.
pub(crate) fn cut_to_line(text: &str, max_chars: usize) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(max_chars)
        .collect()
}
