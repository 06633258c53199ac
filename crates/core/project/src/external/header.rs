//! Reads the usage comment at the beginning of a tool's file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The maximum number of lines at the beginning of a file that are searched for the usage comment.
const MAX_LINES: usize = 50;
/// The maximum number of bytes read from a file. A limit on lines is not enough, because a binary
/// may have no line breaks.
const MAX_BYTES: u64 = 16 * 1024;
/// The words with which a usage comment can begin.
const OPENINGS: [&str; 6] = ["usage:", "help:", "description:", "用法:", "说明:", "描述:"];

/// Reads the usage comment at the beginning of a file. `marker` is the text with which a comment
/// line begins.
pub(super) fn read_usage_comment(path: &Path, marker: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    if bytes.contains(&0) {
        return None;
    }
    extract_usage_comment(&String::from_utf8_lossy(&bytes), marker)
}

/// Extracts the usage comment. The comment begins with the first line that contains an opening
/// word, and ends before the first line that is not a comment, or before two empty comment lines in
/// a row.
fn extract_usage_comment(text: &str, marker: &str) -> Option<String> {
    let mut lines = Vec::<&str>::new();
    for line in text
        .lines()
        .take(MAX_LINES)
        .filter(|line| !line.starts_with("#!"))
    {
        let comment = line
            .trim_start()
            .strip_prefix(marker)
            .map(|rest| rest.trim_start_matches(marker).trim_end());
        let comment = comment.map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
        if lines.is_empty() {
            let opens = |comment: &&str| {
                let lower = comment.to_lowercase();
                OPENINGS.iter().any(|opening| lower.contains(opening))
            };
            lines.extend(comment.filter(opens));
            continue;
        }
        let Some(comment) = comment else { break };
        if comment.is_empty() && lines.last().is_some_and(|last| last.is_empty()) {
            break;
        }
        lines.push(comment);
    }
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_ends_with_the_comment_block() {
        let python = "#!/usr/bin/env python3\n# A tool.\n#\n# Usage: lint PATH\n#   --fix  mends\n#\n# More.\n#\n#\n# not this\nimport os\n# nor this\n";
        assert_eq!(
            extract_usage_comment(python, "#").as_deref(),
            Some("Usage: lint PATH\n  --fix  mends\n\nMore.")
        );
        assert_eq!(
            extract_usage_comment("// 用法: run X\nfunc main() {}\n// x", "//").as_deref(),
            Some("用法: run X")
        );
        assert_eq!(
            extract_usage_comment("# nothing of use\nx = 1\n", "#"),
            None
        );
        assert_eq!(
            extract_usage_comment(&format!("{}# usage: late\n", "#\n".repeat(60)), "#"),
            None
        );
    }

    #[test]
    fn header_of_a_binary_program_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool");
        std::fs::write(&path, b"\x7fELF\0\n# usage: x\n").unwrap();
        assert_eq!(read_usage_comment(&path, "#"), None);
        std::fs::write(&path, format!("# usage: x\n{}", "x".repeat(1 << 20))).unwrap();
        assert_eq!(
            read_usage_comment(&path, "#").as_deref(),
            Some("usage: x"),
            "however large the rest is"
        );
    }
}
