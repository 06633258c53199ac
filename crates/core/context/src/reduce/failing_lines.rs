//! Lines that every reduction of output keeps: those that name a failing test.

/// Maximum characters kept of a line that names a failing test.
const LONGEST: usize = 300;
/// Maximum lines kept that name a failing test.
const FAILED_LINES: usize = 10;

/// Returns the lines that name a failing test, each on one line of bounded length. Every reduction
/// keeps them.
pub(crate) fn failing_lines(output: &str) -> impl Iterator<Item = String> {
    let fails = |line: &&str| {
        line.ends_with("FAILED") || line.starts_with("FAILED ") || line.starts_with("--- FAIL")
    };
    output
        .lines()
        .map(str::trim)
        .filter(fails)
        .take(FAILED_LINES)
        .map(bounded)
}

/// Puts a text on one line of bounded length.
pub(crate) fn bounded(text: &str) -> String {
    cut(text, LONGEST)
}

/// Puts a text on one line of at most `longest` characters.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(longest)
        .collect()
}
