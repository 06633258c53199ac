//! Output in bounded memory: the head and the tail are kept, everything is counted, the whole goes to a file.
//!
//! Invariants: no more than twice the byte limit of each stream is held whatever a command writes; the counts are exact;
//! a spill file is private, was not there before, and stays only if the command's end was seen.

mod spill;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use haft_text::{Cut, Gap, Limits, cut_ends, cut_lines, sanitise_bytes};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use spill::Spill;
pub use spill::SpillProblem;

/// How long output is still read after everything that could write it is gone.
const LAST_WORDS: Duration = Duration::from_secs(1);
const CHUNK: usize = 64 * 1024;

/// How output is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// What will be shown of each stream. This many bytes of its head and of its tail are held in memory.
    pub limits: Limits,
    /// Where the whole of a stream goes once it exceeds the limits: this path with `.stdout` or `.stderr` appended. The
    /// file is created then, readable by its owner only; it must not exist.
    pub spill: Option<PathBuf>,
    /// The most bytes that go to each spill file.
    pub spill_bytes: u64,
}

impl Capture {
    /// Output shown within these limits, its whole in files beginning with this path.
    pub fn spilling_to(limits: Limits, spill: impl Into<PathBuf>) -> Self {
        Self { limits, spill: Some(spill.into()), ..Self::default() }
    }
}

impl Default for Capture {
    /// Limits for a model, no spill file.
    fn default() -> Self {
        Self { limits: Limits::default(), spill: None, spill_bytes: 2 << 30 }
    }
}

/// What was kept of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Its first bytes.
    pub head: Vec<u8>,
    /// Its last bytes, following the head directly where [`Captured::bytes`] is the length of both.
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

impl Captured {
    /// The text to show: sanitised, within the limits, with a marker line where something is missing.
    ///
    /// The counts of the cut are those of the sanitised text; [`Captured::bytes`] and [`Captured::lines`] are exact.
    pub fn text(&self, limits: Limits) -> Cut {
        let gap = self.bytes - (self.head.len() + self.tail.len()) as u64;
        if gap == 0 {
            return cut_lines(&sanitise_bytes(&[self.head.as_slice(), &self.tail].concat()), limits);
        }
        // A character that was cut in two at the gap counts as missing.
        let head = without_open_character(&self.head);
        let tail = without_continuation(&self.tail);
        let torn = (self.head.len() - head.len() + self.tail.len() - tail.len()) as u64;
        let shown = newlines(head) + newlines(tail);
        let all = self.lines - u64::from(self.tail.last().is_some_and(|last| *last != b'\n'));
        let gap = Gap { newlines: all.saturating_sub(shown), bytes: gap + torn };
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
        return if bytes.len() - at < needed { &bytes[..at] } else { bytes };
    }
    bytes
}

/// The bytes without the rest of a UTF-8 character that began before them.
fn without_continuation(bytes: &[u8]) -> &[u8] {
    let torn = bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xbf)).count();
    &bytes[torn..]
}

/// Which of a command's two streams.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Keeps what is read from one stream.
pub(crate) struct Recorder {
    limits: Limits,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    newlines: u64,
    last: Option<u8>,
    spill: Spill,
}

impl Recorder {
    pub(crate) fn new(capture: &Capture, stream: Stream) -> Self {
        let path = capture.spill.as_ref().map(|path| {
            let mut path = path.clone().into_os_string();
            path.push(match stream {
                Stream::Stdout => ".stdout",
                Stream::Stderr => ".stderr",
            });
            PathBuf::from(path)
        });
        Self {
            limits: capture.limits,
            head: Vec::new(),
            tail: VecDeque::new(),
            bytes: 0,
            newlines: 0,
            last: None,
            spill: Spill::new(path, capture.spill_bytes),
        }
    }

    /// Reads to the end, or until a moment after `stop`: a process outside our reach may hold the pipe for ever.
    pub(crate) async fn drain(mut self, mut from: impl AsyncRead + Unpin, stop: &CancellationToken) -> Captured {
        let mut stopped = pin!(async {
            stop.cancelled().await;
            sleep(LAST_WORDS).await;
        });
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = tokio::select! {
                read = from.read(&mut chunk) => read,
                () = &mut stopped => break,
            };
            match read {
                // A pipe that cannot be read has nothing more to say.
                Ok(0) | Err(_) => break,
                Ok(length) => self.push(&chunk[..length]).await,
            }
        }
        self.finish().await
    }

    async fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        self.newlines += newlines(chunk);
        self.last = chunk.last().copied().or(self.last);
        if self.bytes > self.limits.bytes as u64 || self.lines() > self.limits.lines as u64 {
            if self.spill.is_waiting() {
                // Up to here nothing was dropped: head and tail together hold at least the limit.
                let (front, back) = self.tail.as_slices();
                self.spill.open(&[&self.head, front, back]).await;
            }
            self.spill.write(chunk).await;
        }
        self.keep(chunk);
    }

    fn keep(&mut self, chunk: &[u8]) {
        let room = self.limits.bytes - self.head.len().min(self.limits.bytes);
        let (head, rest) = chunk.split_at(room.min(chunk.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.limits.bytes)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.limits.bytes);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    fn lines(&self) -> u64 {
        self.newlines + u64::from(self.last.is_some_and(|last| last != b'\n'))
    }

    async fn finish(self) -> Captured {
        let lines = self.lines();
        let (spill, spill_problem) = self.spill.finish().await;
        Captured { head: self.head, tail: self.tail.into(), bytes: self.bytes, lines, spill, spill_problem }
    }
}
