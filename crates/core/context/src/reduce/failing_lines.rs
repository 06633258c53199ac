//! Lines that every reduction of output keeps: those that name a failing test.

/// Maximum characters kept of a line that names a failing test.
const MAX_LINE_CHARS: usize = 300;
/// Maximum lines kept that name a failing test.
const MAX_FAILING_LINES: usize = 10;

/// Returns the lines that name a failing test, each on one line of bounded length. Every reduction
/// keeps them.
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

/// Puts a text on one line of bounded length.
pub(crate) fn bound_line(text: &str) -> String {
    cut_to_line(text, MAX_LINE_CHARS)
}

/// Puts a text on one line of at most `max_chars` characters.
pub(crate) fn cut_to_line(text: &str, max_chars: usize) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(max_chars)
        .collect()
}
