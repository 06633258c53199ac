//! Output in bounded memory: the head and the tail are kept, everything is counted, the whole goes
//! to a file.
//!
//! Invariants: no more than twice the byte limit of each stream is held whatever a command writes;
//! the counts are exact; a spill file is private, was not there before, and one made on overflow
//! stays only if the command's end was seen.

mod ends;
mod recorder;
mod spill;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use haft_text::{Cut, CutLimits, Gap, cut_ends, cut_lines, sanitise_bytes};

pub(crate) use ends::Ends;
pub(crate) use recorder::OutputRecorder;
pub use spill::SpillProblem;

use crate::live::OutputStream;

/// How output is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// What will be shown of each stream. This many bytes of its head and of its tail are held in
    /// memory.
    pub limits: CutLimits,
    /// Where the whole of a stream goes: this path with `.stdout` or `.stderr` appended, or `.log`
    /// where both are one. The file must not exist; it is created readable by its owner only.
    pub spill: Option<PathBuf>,
    /// The most bytes that go to each spill file.
    pub spill_bytes: u64,
    /// When the file is created.
    pub spill_from: SpillFrom,
}

/// When a spill file is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpillFrom {
    /// Once the output exceeds its limits. The file is removed again if the command is given up
    /// before its end.
    #[default]
    Overflow,
    /// At once, so that it can be read while the command runs. It stays whatever happens.
    Start,
}

impl Capture {
    /// Output shown within these limits, its whole in files beginning with this path.
    pub fn spilling_to(limits: CutLimits, spill: impl Into<PathBuf>) -> Self {
        Self {
            limits,
            spill: Some(spill.into()),
            ..Self::default()
        }
    }

    /// The file of one stream.
    fn file_of(&self, stream: OutputStream) -> Option<PathBuf> {
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
    /// Limits for a model, no spill file.
    fn default() -> Self {
        Self {
            limits: CutLimits::default(),
            spill: None,
            spill_bytes: 2 << 30,
            spill_from: SpillFrom::default(),
        }
    }
}

/// What was kept of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// Its first bytes.
    pub head: Vec<u8>,
    /// Its last bytes, following the head directly where [`CapturedOutput::bytes`] is the length
    /// of both.
    pub tail: Vec<u8>,
    /// All its bytes, kept or not.
    pub bytes: u64,
    /// All its lines; the last one counts with or without its line end.
    pub lines: u64,
    /// The file that holds the whole.
    pub spill: Option<PathBuf>,
    /// Why that file is missing or does not hold the whole.
    pub spill_problem: Option<SpillProblem>,
}

impl CapturedOutput {
    /// The text to show: sanitised, within the limits, with a marker line where something is
    /// missing.
    ///
    /// The counts of the cut are those of the sanitised text; [`CapturedOutput::bytes`] and
    /// [`CapturedOutput::lines`] are exact.
    pub fn text(&self, limits: CutLimits) -> Cut {
        let gap = self.bytes - (self.head.len() + self.tail.len()) as u64;
        if gap == 0 {
            return cut_lines(
                &sanitise_bytes(&[self.head.as_slice(), &self.tail].concat()),
                limits,
            );
        }
        // A character that was cut in two at the gap counts as missing.
        let head = without_open_character(&self.head);
        let tail = without_continuation(&self.tail);
        let torn = (self.head.len() - head.len() + self.tail.len() - tail.len()) as u64;
        let shown = newlines(head) + newlines(tail);
        let all = self.lines - u64::from(self.tail.last().is_some_and(|last| *last != b'\n'));
        let gap = Gap {
            newlines: all.saturating_sub(shown),
            bytes: gap + torn,
        };
        cut_ends(&sanitise_bytes(head), gap, &sanitise_bytes(tail), limits)
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

/// The bytes without a UTF-8 character that begins but does not end at their end.
fn without_open_character(bytes: &[u8]) -> &[u8] {
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

/// The bytes without the rest of a UTF-8 character that began before them.
fn without_continuation(bytes: &[u8]) -> &[u8] {
    let torn = bytes
        .iter()
        .take(3)
        .take_while(|byte| matches!(byte, 0x80..=0xbf))
        .count();
    &bytes[torn..]
}
