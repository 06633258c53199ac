//! What a search found, bounded while it is being found.
//!
//! Invariant: lines and bytes kept never exceed the limits, and a file that turns out to be binary leaves no trace.

use std::fmt::Write as _;
use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, SinkContext, SinkFinish, SinkMatch};
use haft_tool::OutputLimits;
use haft_types::Envelope;
use serde_json::{Value, json};

use crate::visible;

/// The longest piece of one line that is shown.
const MAX_SHOWN: usize = 500;
/// How much of a long line is shown before the match.
const LEAD: usize = 100;
/// How many matches are kept as data; later rounds keep fewer still.
const MAX_DATA: usize = 100;

/// Everything found so far.
pub(super) struct Report {
    limits: OutputLimits,
    text: String,
    lines: usize,
    matches: usize,
    files: usize,
    data: Vec<Value>,
    full: bool,
    /// Files that turned out to be binary.
    pub(super) binary: usize,
    /// Files and folders that could not be searched to their end.
    pub(super) unreadable: usize,
}

impl Report {
    pub(super) fn new(limits: OutputLimits) -> Self {
        let (text, data) = (String::new(), Vec::new());
        Self { limits, text, lines: 0, matches: 0, files: 0, data, full: false, binary: 0, unreadable: 0 }
    }

    /// Whether something found did not fit.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn show(self, name: &str, regex: &str, file_pattern: Option<&str>) -> Envelope {
        let mut text = match (self.matches, self.full) {
            (0, false) => format!("No matches in `{name}`."),
            (matches, false) => format!("{matches} matches in {} files.", self.files),
            (matches, true) => format!(
                "Stopped after {matches} matches in {} files: there are more. Use a narrower expression, folder or file_pattern.",
                self.files
            ),
        };
        if self.unreadable > 0 {
            let _ = write!(text, " {} files or folders could not be read.", self.unreadable);
        }
        if !self.text.is_empty() {
            text.push('\n');
            text.push_str(self.text.trim_end());
        }
        let mut data = json!({
            "path": name, "regex": regex, "matches": self.matches, "files": self.files, "lines": self.data,
        });
        if let Some(pattern) = file_pattern {
            data["file_pattern"] = pattern.into();
        }
        if self.full {
            data["truncated"] = true.into();
        }
        Envelope::success(text).with_data(data)
    }
}

/// Collects the matches of one file and hands them to the report when the file is known to be text.
pub(super) struct Sink<'a> {
    report: &'a mut Report,
    matcher: &'a RegexMatcher,
    name: &'a str,
    text: String,
    lines: usize,
    matches: usize,
    data: Vec<Value>,
    full: bool,
}

impl<'a> Sink<'a> {
    pub(super) fn new(report: &'a mut Report, matcher: &'a RegexMatcher, name: &'a str) -> Self {
        let (text, data) = (String::new(), Vec::new());
        Self { report, matcher, name, text, lines: 0, matches: 0, data, full: false }
    }

    /// Adds a line if it fits; otherwise the search of this file ends.
    fn add(&mut self, line: &str) -> bool {
        // One line more for the separator between files.
        let lines = self.report.lines + self.lines + 2;
        let bytes = self.report.text.len() + self.text.len() + line.len() + "\n--\n".len();
        if lines > self.report.limits.lines || bytes > self.report.limits.bytes {
            self.full = true;
            return false;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
        true
    }
}

impl grep_searcher::Sink for Sink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let number = found.line_number().unwrap_or(0);
        let line = String::from_utf8_lossy(found.bytes());
        let shown = excerpt(line.trim_end_matches(['\r', '\n']), self.matcher);
        if !self.add(&format!("{}:{number}: {shown}", self.name)) {
            return Ok(false);
        }
        self.matches += 1;
        if self.report.data.len() + self.data.len() < MAX_DATA {
            self.data.push(json!({ "path": self.name, "line": number, "text": shown }));
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let number = context.line_number().unwrap_or(0);
        let line = String::from_utf8_lossy(context.bytes());
        let shown = excerpt(line.trim_end_matches(['\r', '\n']), self.matcher);
        Ok(self.add(&format!("{}-{number}- {shown}", self.name)))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        Ok(self.add("--"))
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        if end.binary_byte_offset().is_some() {
            self.report.binary += 1;
            return Ok(());
        }
        self.report.full |= self.full;
        if self.matches == 0 {
            return Ok(());
        }
        if self.report.files > 0 {
            self.report.text.push_str("--\n");
            self.report.lines += 1;
        }
        self.report.text.push_str(&self.text);
        self.report.lines += self.lines;
        self.report.matches += self.matches;
        self.report.files += 1;
        self.report.data.append(&mut self.data);
        Ok(())
    }
}

/// A line as shown; of a long one the part around the match.
fn excerpt(line: &str, matcher: &RegexMatcher) -> String {
    if line.len() <= MAX_SHOWN {
        return visible::line(line).into_owned();
    }
    let found = matcher.find(line.as_bytes()).ok().flatten().map_or(0, |found| found.start());
    let start = line.floor_char_boundary(found.saturating_sub(LEAD));
    let rest = line.get(start..).unwrap_or_default();
    let piece = visible::prefix(rest, MAX_SHOWN);
    let before = if start > 0 { "… " } else { "" };
    let after = if piece.len() < rest.len() { " …" } else { "" };
    format!("{before}{}{after}", visible::line(piece))
}
