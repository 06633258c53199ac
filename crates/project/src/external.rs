//! External tools: programs in a tools folder that the model runs as commands (SPEC 13.4).
//!
//! This module finds them and reads what their files say of themselves; it runs nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::file;
use crate::ground::{Ground, Kind, Level};
use crate::named::{Found, named};

/// Endings of scripts that count without being executable.
const ENDINGS: [&str; 8] = ["py", "sh", "js", "rb", "pl", "php", "go", "rs"];
/// How much of a file is looked at for its header.
const HEADER_LINES: usize = 50;
/// Words with which a header begins to describe the tool.
const OPENINGS: [&str; 6] = ["usage:", "help:", "description:", "用法:", "说明:", "描述:"];

/// A program in a tools folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalTool {
    /// Its file name.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Whose it is.
    pub level: Level,
    /// Whether it can be started as it is.
    pub executable: bool,
}

named!(ExternalTool);

/// Finds the tools.
pub fn load(ground: &Ground) -> Found<ExternalTool> {
    let mut found = Found::default();
    for folder in ground.folders(Kind::Tools) {
        for name in file::names(&folder.path).into_iter().filter(|name| !name.starts_with('.')) {
            let path = folder.path.join(&name);
            let Ok(metadata) = path.metadata() else { continue };
            let executable = metadata.permissions().mode() & 0o111 != 0;
            let counts = match path.extension().and_then(|ending| ending.to_str()) {
                None => executable,
                Some(ending) => ENDINGS.contains(&ending) && std::fs::File::open(&path).is_ok(),
            };
            if metadata.is_file() && counts {
                found.add(ExternalTool { name, path, level: folder.level, executable });
            }
        }
    }
    found.sorted()
}

impl ExternalTool {
    /// What the comment at the head of its file says of how to use it.
    pub fn header(&self, ground: &Ground) -> Option<String> {
        let text = file::read(ground, &self.path, &mut Vec::new())?.text;
        let marker = match self.path.extension().and_then(|ending| ending.to_str()) {
            Some("js" | "go" | "rs") => "//",
            Some(_) | None => "#",
        };
        header(&text, marker)
    }
}

/// From the first comment line that opens a description to the first line that is no comment, or two empty comments in a row.
fn header(text: &str, marker: &str) -> Option<String> {
    let mut lines = Vec::<&str>::new();
    for line in text.lines().take(HEADER_LINES).filter(|line| !line.starts_with("#!")) {
        let comment = line.trim_start().strip_prefix(marker).map(|rest| rest.trim_start_matches(marker).trim_end());
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
    fn headers_end_where_the_comment_does() {
        let python = "#!/usr/bin/env python3\n# A tool.\n#\n# Usage: lint PATH\n#   --fix  mends\n#\n# More.\n#\n#\n# not this\nimport os\n# nor this\n";
        assert_eq!(header(python, "#").as_deref(), Some("Usage: lint PATH\n  --fix  mends\n\nMore."));
        assert_eq!(header("// 用法: run X\nfunc main() {}\n// x", "//").as_deref(), Some("用法: run X"));
        assert_eq!(header("# nothing of use\nx = 1\n", "#"), None);
        assert_eq!(header(&format!("{}# usage: late\n", "#\n".repeat(60)), "#"), None);
    }
}
