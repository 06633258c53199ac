//! Lines that stay whatever is done to output: those that name a failing test.

/// Characters of a line that are kept.
const LONGEST: usize = 300;
/// Lines of a failing command that are kept.
const FAILED_LINES: usize = 10;

/// The lines that name a failing test, on one line each and not too long. Whatever is done to
/// output, they stay.
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

/// On one line, and not too long.
pub(crate) fn bounded(text: &str) -> String {
    cut(text, LONGEST)
}

/// On one line, with at most so many characters.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(longest)
        .collect()
}
