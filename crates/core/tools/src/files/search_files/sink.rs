//! Collects the matches of one file as lines to show.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, SinkContext, SinkFinish, SinkMatch};
use haft_tool::OutputLimits;

use crate::visible;

/// The maximum length, in bytes, of the part of a long line that is shown.
const MAX_SHOWN_BYTES: usize = 500;
/// The maximum number of bytes that are shown before the match in a long line.
const MAX_LEADING_BYTES: usize = 100;

/// A line of the search result: a match, a line of context, or a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MatchedLine {
    Match {
        number: u64,
        text: String,
    },
    Context {
        number: u64,
        text: String,
    },
    /// A gap between two groups of lines.
    Gap,
}

impl MatchedLine {
    fn display_bytes(&self) -> usize {
        match self {
            Self::Match { text, .. } | Self::Context { text, .. } => text.len() + 8,
            Self::Gap => 3,
        }
    }
}

/// The matches of one file, at most as many as one result can show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileMatches {
    pub(super) lines: Vec<MatchedLine>,
    bytes: usize,
    /// True if the file has more matches than are kept.
    pub(super) more: bool,
}

impl FileMatches {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn line_count(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn byte_count(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    pub(super) fn with_line_count(count: usize) -> Self {
        let lines = vec![
            MatchedLine::Match {
                number: 1,
                text: "x".to_owned()
            };
            count
        ];
        Self {
            bytes: lines.iter().map(MatchedLine::display_bytes).sum(),
            lines,
            more: false,
        }
    }
}

/// Distinguishes text files from binary files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileContentKind {
    Text,
    Binary,
}

/// Collects the matches of one file.
pub(super) struct MatchSink<'a> {
    matcher: &'a RegexMatcher,
    limits: OutputLimits,
    pub(super) found: FileMatches,
    pub(super) kind: FileContentKind,
}

impl<'a> MatchSink<'a> {
    pub(super) fn new(matcher: &'a RegexMatcher, limits: OutputLimits) -> Self {
        Self {
            matcher,
            limits,
            found: FileMatches::default(),
            kind: FileContentKind::Text,
        }
    }

    /// Adds a line. Returns false if the limits are reached, which ends the search of this file.
    fn add_line(&mut self, line: MatchedLine) -> bool {
        if self.found.lines.len() >= self.limits.lines || self.found.bytes >= self.limits.bytes {
            self.found.more = true;
            return false;
        }
        self.found.bytes += line.display_bytes();
        self.found.lines.push(line);
        true
    }
}

impl grep_searcher::Sink for MatchSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let text = excerpt_line(found.bytes(), self.matcher);
        Ok(self.add_line(MatchedLine::Match {
            number: found.line_number().unwrap_or(0),
            text,
        }))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let text = excerpt_line(context.bytes(), self.matcher);
        Ok(self.add_line(MatchedLine::Context {
            number: context.line_number().unwrap_or(0),
            text,
        }))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        Ok(self.add_line(MatchedLine::Gap))
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        if end.binary_byte_offset().is_some() {
            // Matches in binary files are not shown.
            self.found = FileMatches::default();
            self.kind = FileContentKind::Binary;
        }
        Ok(())
    }
}

/// Returns a line for display. Of a long line, only the part around the match is decoded and
/// returned.
fn excerpt_line(line: &[u8], matcher: &RegexMatcher) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_SHOWN_BYTES {
        return visible::reveal_line(&String::from_utf8_lossy(line)).into_owned();
    }
    let found = matcher
        .find(line)
        .ok()
        .flatten()
        .map_or(0, |found| found.start());
    let start = find_char_start(line, found.saturating_sub(MAX_LEADING_BYTES));
    let end = find_char_start(line, (start + MAX_SHOWN_BYTES).min(line.len()));
    let piece = String::from_utf8_lossy(line.get(start..end).unwrap_or_default());
    let before = if start > 0 { "… " } else { "" };
    let after = if end < line.len() { " …" } else { "" };
    format!("{before}{}{after}", visible::reveal_line(&piece))
}

/// Returns the index of the first byte of the UTF-8 character that contains the byte `at`, or `at`
/// itself if no character start is found.
fn find_char_start(line: &[u8], at: usize) -> usize {
    (at.saturating_sub(3)..=at)
        .rev()
        .find(|at| line.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80))
        .unwrap_or(at)
}
