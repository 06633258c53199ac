//! Splits a text into passages of some dozen lines.
//!
//! Invariant: the passages contain every line of the text once and in order. A passage begins where
//! a reader would begin: at a heading, at a definition with its comment, or after an empty line.

/// The preferred length of a passage, in lines.
const TARGET_LINES: usize = 40;
/// The minimum length of a passage, in lines. The last passage may be shorter.
const MIN_LINES: usize = 12;
/// The maximum length of a passage, in lines.
const MAX_LINES: usize = 64;
/// The maximum size of a passage, in bytes. A single line that is longer becomes a passage of its
/// own.
const MAX_BYTES: usize = 6 * 1024;

/// Keywords that precede the defined name in definitions of many programming languages.
const DEFINITION_KEYWORDS: [&str; 22] = [
    "class",
    "const",
    "def",
    "defmodule",
    "enum",
    "fn",
    "func",
    "function",
    "impl",
    "interface",
    "macro_rules",
    "message",
    "mod",
    "module",
    "namespace",
    "package",
    "protocol",
    "record",
    "static",
    "struct",
    "trait",
    "type",
];

/// A passage of a text, with the parts of it that are indexed separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextChunk {
    /// The first line of the passage, from 1.
    pub(crate) start: usize,
    /// The last line of the passage, inclusive.
    pub(crate) end: usize,
    /// The lines of the passage that are headings or define a name.
    pub(crate) names: String,
    /// The comment lines of the passage, found by the comment markers that most languages use.
    pub(crate) comments: String,
    /// The complete text of the passage.
    pub(crate) text: String,
}

/// Splits a text into passages. A blank passage is merged into the preceding one.
pub(crate) fn split_chunks(text: &str) -> Vec<TextChunk> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut start = 0;
    while start < lines.len() {
        let end = find_chunk_end(&lines, start);
        let part = lines.get(start..end).unwrap_or_default();
        if part.iter().any(|line| !line.trim().is_empty()) || found.is_empty() {
            let names: Vec<&str> = part
                .iter()
                .copied()
                .filter(|line| is_heading(line) || is_definition(line))
                .collect();
            let comments: Vec<&str> = part
                .iter()
                .copied()
                .filter(|line| is_comment(line))
                .collect();
            let names = names.join("\n");
            let comments = comments.join("\n");
            found.push(TextChunk {
                start: start + 1,
                end,
                names,
                comments,
                text: part.join("\n"),
            });
        } else if let Some(TextChunk { end: last, .. }) = found.last_mut() {
            *last = end;
        }
        start = end;
    }
    found
}

/// Returns the index of the line after the passage that begins at `start`, chosen so that the next
/// passage begins at a heading or after an empty line if possible.
fn find_chunk_end(lines: &[&str], start: usize) -> usize {
    let mut bytes = 0;
    let mut limit = start;
    for line in lines.iter().skip(start).take(MAX_LINES) {
        bytes += line.len() + 1;
        if bytes > MAX_BYTES && limit > start {
            break;
        }
        limit += 1;
    }
    if limit == lines.len() {
        return limit;
    }
    let earliest = (start + MIN_LINES).min(limit);
    (earliest..=limit)
        .max_by_key(|&at| {
            score_boundary(lines, at) * 20 + MAX_LINES
                - at.abs_diff(start + TARGET_LINES).min(MAX_LINES)
        })
        .unwrap_or(limit)
}

/// Rates how suitable line `at` is as the beginning of a passage. Higher is better.
fn score_boundary(lines: &[&str], at: usize) -> usize {
    let Some(line) = lines.get(at) else { return 3 };
    let before = at
        .checked_sub(1)
        .and_then(|before| lines.get(before))
        .copied()
        .unwrap_or_default();
    let flush = line.starts_with(|first: char| !first.is_whitespace() && !"})]".contains(first));
    match (before.trim().is_empty(), flush) {
        _ if is_heading(line) => 4,
        (true, true) => 3,
        (true, false) => 1,
        (false, _) => 0,
    }
}

/// True if the line is a Markdown heading.
fn is_heading(line: &str) -> bool {
    let marks = line.bytes().take_while(|byte| *byte == b'#').count();
    (1..=6).contains(&marks) && line.as_bytes().get(marks) == Some(&b' ')
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["//", "/*", "*", "# ", "\"\"\"", "--"]
        .iter()
        .any(|mark| line.starts_with(mark))
}

/// True if the line defines a name. Recognizes the syntax of most languages.
fn is_definition(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with(['/', '*', '#', '"', '\'']) {
        return false;
    }
    let mut words = line
        .split(|one: char| !one.is_alphanumeric() && one != '_')
        .filter(|word| !word.is_empty());
    // Modifiers may precede the keyword, as in `pub(crate) async unsafe fn`.
    words
        .by_ref()
        .take(5)
        .any(|word| DEFINITION_KEYWORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn chunk_begins_with_the_comment_of_its_definition() {
        let function = |name: &str| {
            format!(
                "/// Says {name}.\npub fn {name}() {{\n{}}}\n\n",
                "    work();\n".repeat(24)
            )
        };
        let text = ["one", "two", "three", "four"].map(function).concat();
        let found = split_chunks(&text);
        assert_eq!(
            found
                .iter()
                .map(|one| (one.start, one.end))
                .collect::<Vec<_>>(),
            [(1, 28), (29, 56), (57, 112)]
        );
        assert_eq!(
            (found[1].names.as_str(), found[1].comments.as_str()),
            ("pub fn two() {", "/// Says two.")
        );
        assert!(found[1].text.starts_with("/// Says two."));
    }

    #[test]
    fn headings_begin_chunks_and_are_names() {
        let text = format!(
            "# One\n{}## Two\n{}",
            "text\n".repeat(30),
            "text\n".repeat(50)
        );
        let found = split_chunks(&text);
        assert_eq!(
            (found[0].names.as_str(), found[1].names.as_str()),
            ("# One", "## Two")
        );
        assert!(!is_heading("#include <a>") && !is_heading("#!/bin/sh") && is_heading("### x"));
    }

    #[test]
    fn defines_recognizes_definitions_of_many_languages() {
        for line in [
            "pub(crate) async fn f()",
            "class A(B):",
            "  def f(self):",
            "func (s *S) Get() {",
            "export interface I {",
        ] {
            assert!(is_definition(line), "{line}");
        }
        for line in ["// fn in a comment", "let x = 1;", "# class", ""] {
            assert!(!is_definition(line), "{line}");
        }
    }

    proptest! {
        #[test]
        fn chunks_contain_every_line_once(text in "([a-z#} ]{0,8}\n|\n){0,300}", long in 0_usize..9_000) {
            let text = format!("{text}{}\nend", "x".repeat(long));
            let found = split_chunks(&text);
            let mut next = 1;
            for one in &found {
                prop_assert_eq!(one.start, next);
                prop_assert!(one.end >= one.start);
                next = one.end + 1;
            }
            prop_assert_eq!(next, text.lines().count() + 1);
        }
    }
}
