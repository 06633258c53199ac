//! Changes of files as rows.

use crate::highlight::Highlighter;
use crate::line::{StyledLine, StyledSpan, TextStyle};
use crate::wrap::chop;

/// The rows of a unified diff, or of text that may hold one.
pub(crate) fn rows<'a>(lines: impl Iterator<Item = &'a str>, columns: usize) -> Vec<StyledLine> {
    rows_of("", lines, columns)
}

/// The same where the first file is known and need not be named.
pub(crate) fn rows_of<'a>(path: &str, lines: impl Iterator<Item = &'a str>, columns: usize) -> Vec<StyledLine> {
    let file = Highlighter::of_path(path);
    let mut change = DiffPainter { file, new: file };
    lines.flat_map(|line| chop(&change.line(line), columns)).collect()
}

/// A change as it is read, line by line.
struct DiffPainter {
    /// The file as it is at the beginning of each place.
    file: Highlighter,
    /// The file as it will be, up to here.
    new: Highlighter,
}

impl DiffPainter {
    fn line(&mut self, line: &str) -> StyledLine {
        match line.split_at_checked(1) {
            Some(("+", rest)) if !line.starts_with("+++") => {
                let code = self.new.line(rest);
                StyledLine::of("+", TextStyle::Added)
                    .spans()
                    .iter()
                    .cloned()
                    .chain(code.spans().iter().map(added))
                    .collect()
            }
            Some((" ", rest)) => {
                let code = self.new.line(rest);
                StyledLine::of(" ", TextStyle::Plain).spans().iter().chain(code.spans()).cloned().collect()
            }
            _ => {
                if let Some(path) = line.strip_prefix("+++ ") {
                    self.file = Highlighter::of_path(path);
                    self.new = self.file;
                } else if line.starts_with("@@") {
                    self.new = self.file;
                }
                StyledLine::of(line, style(line))
            }
        }
    }
}

/// What is added stays the colour of that; only words that stand out keep their own.
fn added(span: &StyledSpan) -> StyledSpan {
    let style = if span.style() == TextStyle::Plain { TextStyle::Added } else { span.style() };
    StyledSpan::part(span.text().to_owned(), style)
}

/// How many lines are added and removed.
pub(crate) fn counts(text: &str) -> String {
    let count = |sign: &str| {
        let places = text.lines().skip_while(|line| !line.starts_with("@@ -"));
        places.filter(|line| line.starts_with(sign) && !line.starts_with(&sign.repeat(3))).count()
    };
    format!("+{} −{}", count("+"), count("-"))
}

/// Whether the text holds a unified diff.
pub(crate) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ -"))
}

fn style(line: &str) -> TextStyle {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => TextStyle::Strong,
        [b'-', ..] => TextStyle::Removed,
        [b'@', b'@', ..] => TextStyle::Accent,
        _ => TextStyle::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_a_diff_has_the_tones_of_its_language() {
        let text = "--- a.rs\n+++ a.rs\n@@ -1 +1 @@\n fn a() {\n-    1\n+    if b { \"c\" }\n";
        let rows = rows(text.lines(), 60);
        let has = |row: usize, text: &str, style| {
            rows[row].spans().iter().any(|s| s.text().contains(text) && s.style() == style)
        };
        assert!(has(3, "fn", TextStyle::Keyword) && has(4, "1", TextStyle::Removed), "{rows:?}");
        assert!(
            has(5, "+    ", TextStyle::Added)
                && has(5, "if", TextStyle::Keyword)
                && has(5, "\"c\"", TextStyle::Literal),
            "{rows:?}"
        );
        assert_eq!(rows.iter().map(StyledLine::plain).collect::<Vec<_>>(), text.lines().collect::<Vec<_>>());
    }

    #[test]
    fn lines_of_a_diff_have_their_tones() {
        let text = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z";
        let styles: Vec<_> = rows(text.lines(), 40).iter().map(|row| row.spans()[0].style()).collect();
        assert_eq!(
            styles,
            [
                TextStyle::Strong,
                TextStyle::Strong,
                TextStyle::Accent,
                TextStyle::Removed,
                TextStyle::Added,
                TextStyle::Plain
            ]
        );
        assert!(is_diff(text) && !is_diff("+ not one"));
    }
}
