//! Reports the matches of a search as text and data, within the limits.

use std::fmt::Write as _;
use std::path::Path;

use haft_tool::{OutputLimits, Workspace};
use haft_types::Envelope;
use serde_json::{Value, json};

use super::collect::{SearchOutcome, SearchProblem};
use super::sink::MatchedLine;
use crate::{paths, visible};

/// The maximum number of matches in the data of the result. Later rounds keep even fewer.
const MAX_DATA_MATCHES: usize = 100;
/// The maximum number of files that the result names because some of their lines are too long.
const MAX_NAMED_FILES: usize = 5;

/// The parameters of a call of `search_files`.
pub(super) struct SearchRequest<'a> {
    pub(super) name: &'a str,
    pub(super) regex: &'a str,
    pub(super) file_pattern: Option<&'a str>,
}

/// Collects the lines of the result, in the order of the files' paths.
#[derive(Default)]
struct SearchReport {
    text: String,
    lines: usize,
    matches: usize,
    files: usize,
    data: Vec<Value>,
    full: bool,
}

/// Returns the result of a search, as text and data.
pub(super) fn build_envelope(
    finished: &SearchOutcome,
    workspace: &Workspace,
    limits: OutputLimits,
    question: &SearchRequest<'_>,
) -> Envelope {
    let mut report = SearchReport::default();
    for (path, found) in &finished.files {
        let matches = report.matches;
        let start = report.lines;
        let name = paths::display_path(workspace, path);
        let fits = found
            .lines
            .iter()
            .all(|line| report.add_line(&name, line, limits, start));
        report.files += usize::from(report.matches > matches);
        report.full |= !fits || found.more;
        if report.full {
            break;
        }
    }
    report.full |= finished.more;
    let heading = report.heading(question.name) + &describe_problems(finished, workspace);
    let text = if report.text.is_empty() {
        heading
    } else {
        format!("{heading}\n{}", report.text.trim_end())
    };
    let mut data = json!({
        "path": question.name, "regex": question.regex, "matches": report.matches, "files": report.files, "lines": report.data,
    });
    if let Some(pattern) = question.file_pattern {
        data["file_pattern"] = pattern.into();
    }
    if report.full {
        data["truncated"] = true.into();
    }
    Envelope::success(text).with_data(data)
}

impl SearchReport {
    /// Adds a line if it fits into the limits, else returns false. `start` is the number of lines
    /// before the current file.
    fn add_line(
        &mut self,
        name: &str,
        line: &MatchedLine,
        limits: OutputLimits,
        start: usize,
    ) -> bool {
        let shown = match line {
            MatchedLine::Match { number, text } => {
                format!("{}:{number}: {text}", visible::reveal_line(name))
            }
            MatchedLine::Context { number, text } => {
                format!("{}-{number}- {text}", visible::reveal_line(name))
            }
            MatchedLine::Gap => "--".to_owned(),
        };
        let separator = if start > 0 && self.lines == start {
            "--\n"
        } else {
            ""
        };
        // Counts one more line for the separator, and one for the heading.
        let bytes = self.text.len() + separator.len() + shown.len() + 1;
        if self.lines + 2 > limits.lines || bytes > limits.bytes {
            return false;
        }
        self.text.push_str(separator);
        self.text.push_str(&shown);
        self.text.push('\n');
        self.lines += 1 + usize::from(!separator.is_empty());
        if let MatchedLine::Match { number, text } = line {
            self.matches += 1;
            if self.data.len() < MAX_DATA_MATCHES {
                self.data
                    .push(json!({ "path": name, "line": number, "text": text }));
            }
        }
        true
    }

    fn heading(&self, name: &str) -> String {
        let matches = self.matches;
        let files = self.files;
        match (matches, self.full) {
            (0, false) => format!("No matches in `{name}`."),
            (_, false) => format!("{matches} matches in {files} files."),
            (_, true) => format!(
                "Stopped after {matches} matches in {files} files: there are more. Use a narrower expression, folder or file_pattern."
            ),
        }
    }
}

/// Describes the files that could not be searched completely.
fn describe_problems(finished: &SearchOutcome, workspace: &Workspace) -> String {
    let of = |wanted: SearchProblem| {
        finished
            .troubled
            .iter()
            .filter(move |(_, trouble)| **trouble == wanted)
            .map(|(path, _)| path.as_path())
    };
    let mut text = String::new();
    match of(SearchProblem::Unreadable).count() {
        0 => {}
        count => {
            let _ = write!(text, " {count} files or folders could not be read.");
        }
    }
    let long: Vec<&Path> = of(SearchProblem::LongLines).collect();
    if !long.is_empty() {
        let names: Vec<String> = long
            .iter()
            .take(MAX_NAMED_FILES)
            .map(|path| format!("`{}`", paths::display_path(workspace, path)))
            .collect();
        let more = if long.len() > MAX_NAMED_FILES {
            ", …"
        } else {
            ""
        };
        let _ = write!(
            text,
            " Lines of more than 4 MB were searched only at their beginning, in {} files ({}{more}).",
            long.len(),
            names.join(", ")
        );
    }
    text
}
