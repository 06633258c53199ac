//! Keeps the head and the tail of a stream of any length.
//!
//! Invariant: the head and the tail hold at most the byte limit each, and the counts are exact.

use std::collections::VecDeque;

use haft_text::CutLimits;

use super::{CapturedOutput, count_newlines, trim_incomplete_character};

/// The maximum length, in bytes, of an incomplete control sequence or character that is held back
/// until the next read.
const MAX_INCOMPLETE_BYTES: usize = 64;

/// The first and the last bytes of a stream, with exact counts of its bytes and lines.
#[derive(Debug, Default)]
pub(crate) struct HeadAndTail {
    limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    newlines: u64,
    last: Option<u8>,
}

impl HeadAndTail {
    pub(crate) fn new(limits: CutLimits) -> Self {
        Self {
            limit: limits.bytes,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        self.newlines += count_newlines(chunk);
        self.last = chunk.last().copied().or(self.last);
        let room = self.limit - self.head.len().min(self.limit);
        let (head, rest) = chunk.split_at(room.min(chunk.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.limit)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.limit);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Returns the total number of bytes and lines that the stream would have after adding `chunk`.
    /// The last line counts with or without a line ending.
    pub(crate) fn counts_after(&self, chunk: &[u8]) -> (u64, u64) {
        let last = chunk.last().copied().or(self.last);
        let lines = self.newlines
            + count_newlines(chunk)
            + u64::from(last.is_some_and(|last| last != b'\n'));
        (self.bytes + chunk.len() as u64, lines)
    }

    /// Returns the stored bytes in order. A stream within the byte limit is stored completely.
    pub(crate) fn held_bytes(&self) -> Vec<u8> {
        let (front, back) = self.tail.as_slices();
        [self.head.as_slice(), front, back].concat()
    }

    pub(crate) fn to_captured(&self) -> CapturedOutput {
        CapturedOutput {
            head: self.head.clone(),
            tail: self.tail.iter().copied().collect(),
            bytes: self.bytes,
            lines: self.counts_after(&[]).1,
            spill: None,
            spill_problem: None,
        }
    }

    /// Returns the captured output and empties the buffer, except for an incomplete control
    /// sequence or character at the end: split in two, the sequence would be shown as garbage.
    pub(crate) fn take_complete(&mut self) -> CapturedOutput {
        let end: Vec<u8> = if self.tail.is_empty() {
            self.head[self.head.len().saturating_sub(MAX_INCOMPLETE_BYTES)..].to_vec()
        } else {
            self.tail
                .range(self.tail.len().saturating_sub(MAX_INCOMPLETE_BYTES)..)
                .copied()
                .collect()
        };
        let incomplete = incomplete_suffix(&end).to_vec();
        self.remove_last(incomplete.len());
        let taken = self.take_all();
        self.push(&incomplete);
        taken
    }

    /// Returns the captured output and empties the buffer, but keeps its limits.
    pub(crate) fn take_all(&mut self) -> CapturedOutput {
        let taken = self.to_captured();
        *self = Self {
            limit: self.limit,
            ..Self::default()
        };
        taken
    }

    /// Removes the last `count` bytes, which must not contain a line ending.
    fn remove_last(&mut self, count: usize) {
        if self.tail.is_empty() {
            self.head.truncate(self.head.len() - count);
        } else {
            self.tail.truncate(self.tail.len() - count);
        }
        self.bytes -= count as u64;
        self.last = self.tail.back().or(self.head.last()).copied();
    }
}

/// Returns the incomplete control sequence or character at the end of `bytes`, or an empty slice.
fn incomplete_suffix(bytes: &[u8]) -> &[u8] {
    if let Some(at) = bytes.iter().rposition(|byte| *byte == 0x1b) {
        let sequence = &bytes[at..];
        // A line end cannot be part of a sequence: such bytes are no sequence, and a terminal would
        // have shown them.
        let is_open = match sequence.get(1) {
            None => true,
            Some(b'[') => sequence[2..].iter().all(|byte| (0x20..0x40).contains(byte)),
            Some(b']' | b'P' | b'X' | b'^' | b'_') => {
                !sequence.contains(&0x07) && !sequence.contains(&b'\n')
            }
            Some(_) => false,
        };
        if is_open {
            return sequence;
        }
    }
    &bytes[trim_incomplete_character(bytes).len()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends_with_room(bytes: usize) -> HeadAndTail {
        HeadAndTail::new(CutLimits {
            lines: 1_000,
            bytes,
        })
    }

    #[test]
    fn take_whole_holds_back_an_open_escape_sequence() {
        for (first, shown, second, then) in [
            ("red: \x1b[3", "red: ", "1mred", "\x1b[31mred"),
            ("esc\x1b", "esc", "[0mx", "\x1b[0mx"),
            ("title\x1b]0;ab", "title", "c\x07x", "\x1b]0;abc\x07x"),
            ("plain", "plain", "more", "more"),
            ("\x1b[1mdone", "\x1b[1mdone", "!", "!"),
        ] {
            for room in [4_096, 12] {
                let mut ends = ends_with_room(room);
                ends.push(first.as_bytes());
                let taken = ends.take_complete();
                let all = [taken.head, taken.tail].concat();
                assert_eq!(String::from_utf8(all).unwrap(), shown, "{first:?}");
                assert_eq!(taken.bytes, shown.len() as u64);
                ends.push(second.as_bytes());
                assert_eq!(ends.bytes, then.len() as u64);
                assert_eq!(String::from_utf8(ends.held_bytes()).unwrap(), then);
            }
        }
    }

    #[test]
    fn take_whole_holds_back_a_torn_character() {
        let mut ends = ends_with_room(100);
        let [a, b] = [0xc3, 0xa9];
        ends.push(&[b'x', a]);
        assert_eq!(ends.take_complete().head, b"x");
        ends.push(&[b]);
        assert_eq!(ends.take_complete().head, "é".as_bytes());
        assert_eq!(ends.take_complete().bytes, 0);
    }

    #[test]
    fn take_all_holds_nothing_back() {
        let mut ends = ends_with_room(100);
        ends.push(b"half \x1b[");
        assert_eq!(ends.take_all().bytes, 7);
        assert_eq!(ends.bytes, 0);
    }
}
