//! Captures output in bounded memory: keeps the head and the tail, counts everything, and writes
//! the full output to a file.
//!
//! Invariants: at most twice the byte limit is held per stream, however much a command writes; the
//! counts are exact; a spill file is private and did not exist before; a spill file made on
//! overflow is kept only if the command was observed until its end.

mod head_tail;
mod recorder;
mod spill;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use haft_text::{Cut, CutLimits, Gap, cut_ends, cut_lines, sanitize_bytes};

pub(crate) use head_tail::HeadAndTail;
pub(crate) use recorder::OutputRecorder;
pub use spill::SpillProblem;

use crate::live::OutputStream;

/// Settings for capturing the output of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The limits for showing a stream. Memory holds at most `limits.bytes` of the stream's head
    /// and as many bytes of its tail.
    pub limits: CutLimits,
    /// The path prefix of the spill files. The suffix `.stdout` or `.stderr` is appended, or `.log`
    /// if the streams are joined. The files must not exist; they are created readable by their
    /// owner only.
    pub spill: Option<PathBuf>,
    /// The maximum number of bytes in each spill file.
    pub max_spill_bytes: u64,
    pub spill_from: SpillFrom,
}

/// The moment when a spill file is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpillFrom {
    /// The spill file is created once the output exceeds the limits, and removed if the command is
    /// abandoned before its end.
    #[default]
    Overflow,
    /// The spill file is created at the start and always kept, so that it can be read while the
    /// command runs.
    Start,
}

impl Capture {
    /// Creates settings that show output within `limits` and write the full output to files whose
    /// paths start with `spill`.
    pub fn with_spill(limits: CutLimits, spill: impl Into<PathBuf>) -> Self {
        Self {
            limits,
            spill: Some(spill.into()),
            ..Self::default()
        }
    }

    /// Returns the path of the spill file of `stream`.
    fn spill_path(&self, stream: OutputStream) -> Option<PathBuf> {
        let mut path = self.spill.clone()?.into_os_string();
        path.push(match stream {
            OutputStream::Stdout => ".stdout",
            OutputStream::Stderr => ".stderr",
            OutputStream::Both => ".log",
        });
        Some(PathBuf::from(path))
    }
}

impl Default for Capture {
    /// Returns settings with the limits for output shown to a model, and without a spill file.
    fn default() -> Self {
        Self {
            limits: CutLimits::default(),
            spill: None,
            max_spill_bytes: 2 << 30,
            spill_from: SpillFrom::default(),
        }
    }
}

/// The captured part of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The first bytes of the stream.
    pub head: Vec<u8>,
    /// The last bytes of the stream. Nothing is missing between head and tail if
    /// [`CapturedOutput::bytes`] equals the sum of their lengths.
    pub tail: Vec<u8>,
    /// The number of bytes in the whole stream.
    pub bytes: u64,
    /// The number of lines in the whole stream; the last line counts with or without a line ending.
    pub lines: u64,
    /// The file with the full output.
    pub spill: Option<PathBuf>,
    /// The reason why the spill file is missing or incomplete.
    pub spill_problem: Option<SpillProblem>,
}

impl CapturedOutput {
    /// Returns the text to show: sanitized, within `limits`, with a marker line where something is
    /// missing.
    ///
    /// The counts in the returned [`Cut`] refer to the sanitized text; [`CapturedOutput::bytes`]
    /// and [`CapturedOutput::lines`] are exact.
    pub fn text(&self, limits: CutLimits) -> Cut {
        let gap = self.bytes - (self.head.len() + self.tail.len()) as u64;
        if gap == 0 {
            return cut_lines(
                &sanitize_bytes(&[self.head.as_slice(), &self.tail].concat()),
                limits,
            );
        }
        // A character split by the gap counts as missing.
        let head = trim_incomplete_character(&self.head);
        let tail = trim_leading_continuation(&self.tail);
        let torn = (self.head.len() - head.len() + self.tail.len() - tail.len()) as u64;
        let shown = count_newlines(head) + count_newlines(tail);
        let all = self.lines - u64::from(self.tail.last().is_some_and(|last| *last != b'\n'));
        let gap = Gap {
            newlines: all.saturating_sub(shown),
            bytes: gap + torn,
        };
        cut_ends(&sanitize_bytes(head), gap, &sanitize_bytes(tail), limits)
    }
}

fn count_newlines(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

/// Removes an incomplete UTF-8 character from the end.
fn trim_incomplete_character(bytes: &[u8]) -> &[u8] {
    let from = bytes.len().saturating_sub(3);
    for at in (from..bytes.len()).rev() {
        let needed = match bytes[at] {
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        return if bytes.len() - at < needed {
            &bytes[..at]
        } else {
            bytes
        };
    }
    bytes
}

/// Removes the last bytes of a split UTF-8 character from the beginning of `bytes`.
fn trim_leading_continuation(bytes: &[u8]) -> &[u8] {
    let torn = bytes
        .iter()
        .take(3)
        .take_while(|byte| matches!(byte, 0x80..=0xbf))
        .count();
    &bytes[torn..]
}
