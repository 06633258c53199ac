//! Checks the citations in a model's answer while the answer arrives.
//!
//! Invariant: a citation such as `[7]` outside code leaves this module unchanged only if a passage
//! has its number. The text does not depend on the pieces in which it arrives.

use std::collections::BTreeSet;

/// Marks the citations in a text that name no passage, and remembers the passages that are cited.
///
/// Citations are `[1]`, `[1, 3]` and `[1-3]`. Brackets in code are not citations.
pub(super) struct CitationChecker {
    /// The number of passages, which are numbered from 1.
    passages: usize,
    /// The beginning of a possible citation, from its `[`; otherwise empty.
    held: String,
    /// The number of backticks that opened the current code; 0 outside code.
    code: usize,
    /// The number of backticks directly before the next character.
    backticks: usize,
    is_line_blank: bool,
    cited: BTreeSet<usize>,
    has_unknown: bool,
}

impl CitationChecker {
    pub(super) fn new(passages: usize) -> Self {
        Self {
            passages,
            held: String::new(),
            code: 0,
            backticks: 0,
            is_line_blank: true,
            cited: BTreeSet::new(),
            has_unknown: false,
        }
    }

    /// Adds a piece of the answer, and returns the text that is complete and checked.
    pub(super) fn check_piece(&mut self, piece: &str) -> String {
        let mut checked = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.check_char(c, &mut checked);
        }
        checked
    }

    /// Returns the text that was held back when the answer ended.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Returns the numbers of the cited passages, in order.
    pub(super) fn cited(&self) -> impl Iterator<Item = usize> {
        self.cited.iter().copied()
    }

    /// True if a citation names no passage.
    pub(super) fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    fn check_char(&mut self, c: char, checked: &mut String) {
        if !self.held.is_empty() {
            if c == ']' {
                let held = std::mem::take(&mut self.held);
                checked.push_str(&self.mark_unknown(held.trim_start_matches('[')));
                return;
            }
            if c.is_ascii_digit() || matches!(c, ',' | ' ' | '-' | '–') {
                self.held.push(c);
                return;
            }
            checked.push_str(&std::mem::take(&mut self.held));
        }
        self.track_code(c);
        if c == '[' && self.code == 0 {
            self.held.push(c);
        } else {
            checked.push(c);
        }
    }

    /// Updates the state of code spans and code blocks. Code opened by one or two backticks ends at
    /// a blank line at the latest, so that a stray backtick hides few citations.
    fn track_code(&mut self, c: char) {
        if c == '`' {
            self.backticks += 1;
            self.is_line_blank = false;
            return;
        }
        let run = std::mem::take(&mut self.backticks);
        if run > 0 {
            let is_end = run == self.code || self.code >= 3 && run > self.code;
            self.code = match self.code {
                0 => run,
                _ if is_end => 0,
                open => open,
            };
        }
        if c == '\n' {
            if self.is_line_blank && self.code < 3 {
                self.code = 0;
            }
            self.is_line_blank = true;
        } else if !c.is_whitespace() {
            self.is_line_blank = false;
        }
    }

    /// Returns the citation with `inside` between its brackets, with a question mark after each
    /// number that no passage has. Returns brackets that are no citation unchanged.
    fn mark_unknown(&mut self, inside: &str) -> String {
        let ranges: Option<Vec<_>> = inside
            .split(',')
            .map(|part| parse_range(part.trim()))
            .collect();
        let Some(ranges) = ranges else {
            return format!("[{inside}]");
        };
        let mut parts = Vec::new();
        for (part, (first, last)) in inside.split(',').zip(ranges) {
            if first >= 1 && first <= last && last <= self.passages {
                self.cited.extend(first..=last);
                parts.push(part.to_owned());
            } else {
                self.has_unknown = true;
                parts.push(format!("{}?", part.trim_end()));
            }
        }
        format!("[{}]", parts.join(","))
    }
}

/// Parses a number, or two numbers with a hyphen between them.
fn parse_range(text: &str) -> Option<(usize, usize)> {
    let (first, last) = text.split_once(['-', '–']).unwrap_or((text, text));
    Some((parse_number(first.trim())?, parse_number(last.trim())?))
}

/// Parses a number of digits alone. A number that is too large becomes the largest one.
fn parse_number(digits: &str) -> Option<usize> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the checked text, and the numbers of the cited passages.
    fn check_text(text: &str, passages: usize) -> (String, Vec<usize>) {
        let mut checker = CitationChecker::new(passages);
        let mut checked = checker.check_piece(text);
        checked.push_str(&checker.finish());
        (checked, checker.cited().collect())
    }

    #[test]
    fn citations_without_a_passage_are_marked() {
        for (text, checked, cited) in [
            ("So it is [1].", "So it is [1].", vec![1]),
            ("So it is[2][3].", "So it is[2][3?].", vec![2]),
            ("A [1, 7] b", "A [1, 7?] b", vec![1]),
            ("A [1-2] b [2–9]", "A [1-2] b [2–9?]", vec![1, 2]),
            ("A [0] b [2-1]", "A [0?] b [2-1?]", vec![]),
            (
                "[99999999999999999999999]",
                "[99999999999999999999999?]",
                vec![],
            ),
        ] {
            assert_eq!(check_text(text, 2), (checked.to_owned(), cited), "{text}");
        }
    }

    #[test]
    fn brackets_that_are_no_citation_are_unchanged() {
        for text in [
            "- [ ] a task, [x] done, [link](url), [] and [-]",
            "code `args[7]` and\n```\nlist[8]\n```\n",
            "``a`[7]``",
            "an open [7",
            "[[a]]",
        ] {
            assert_eq!(check_text(text, 2), (text.to_owned(), vec![]), "{text}");
        }
    }

    #[test]
    fn citations_after_code_are_checked() {
        for (text, checked) in [
            ("`a[9]` [7]", "`a[9]` [7?]"),
            ("```\na[9]\n```\n[7]", "```\na[9]\n```\n[7?]"),
            ("a stray ` backtick\n\n[7]", "a stray ` backtick\n\n[7?]"),
            ("[1 [7]", "[1 [7?]"),
        ] {
            assert_eq!(check_text(text, 2).0, checked, "{text}");
        }
    }

    #[test]
    fn text_does_not_depend_on_its_pieces() {
        let text = "A [1], b[7]; `c[8]` [1, 9] [2–3].";
        let mut checker = CitationChecker::new(2);
        let mut checked = String::new();
        for c in text.chars() {
            checked.push_str(&checker.check_piece(&c.to_string()));
        }
        checked.push_str(&checker.finish());
        assert_eq!(checked, check_text(text, 2).0);
        assert_eq!(checked, "A [1], b[7?]; `c[8]` [1, 9?] [2–3?].");
        assert!(checker.has_unknown());
    }
}
