//! Changes of files as rows.

use crate::line::{Line, Tone};
use crate::wrap::chop;

/// The rows of a unified diff, or of text that may hold one.
pub(crate) fn rows<'a>(lines: impl Iterator<Item = &'a str>, columns: usize) -> Vec<Line> {
    lines.flat_map(|line| chop(&Line::of(line, tone(line)), columns)).collect()
}

/// Whether the text holds a unified diff.
pub(crate) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ -"))
}

fn tone(line: &str) -> Tone {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Tone::Strong,
        [b'+', ..] => Tone::Added,
        [b'-', ..] => Tone::Removed,
        [b'@', b'@', ..] => Tone::Accent,
        _ => Tone::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_diff_have_their_tones() {
        let text = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z";
        let tones: Vec<_> = rows(text.lines(), 40).iter().map(|row| row.spans()[0].tone()).collect();
        assert_eq!(tones, [Tone::Strong, Tone::Strong, Tone::Accent, Tone::Removed, Tone::Added, Tone::Plain]);
        assert!(is_diff(text) && !is_diff("+ not one"));
    }
}
