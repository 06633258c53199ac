//! Keeps the head and the tail of a stream of any length.
//!
//! Invariant: at most the byte limit is held of each of them, and the counts are exact.

use std::collections::VecDeque;

use haft_text::CutLimits;

use super::{CapturedOutput, newlines, without_open_character};

/// Maximum bytes of an incomplete control sequence or character that are held back for the next
/// read.
const LONGEST_OPEN: usize = 64;

/// The first and the last bytes of a stream, with exact counts of its bytes and lines.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    most: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    newlines: u64,
    last: Option<u8>,
}

impl Ends {
    pub(crate) fn new(limits: CutLimits) -> Self {
        Self {
            most: limits.bytes,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        self.newlines += newlines(chunk);
        self.last = chunk.last().copied().or(self.last);
        let room = self.most - self.head.len().min(self.most);
        let (head, rest) = chunk.split_at(room.min(chunk.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.most)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.most);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Returns the number of bytes and lines after adding `chunk`. The last line counts with or
    /// without its line end.
    pub(crate) fn counts_with(&self, chunk: &[u8]) -> (u64, u64) {
        let last = chunk.last().copied().or(self.last);
        let lines =
            self.newlines + newlines(chunk) + u64::from(last.is_some_and(|last| last != b'\n'));
        (self.bytes + chunk.len() as u64, lines)
    }

    /// Returns the held bytes in order. They are complete as long as no more than the limit was
    /// written.
    pub(crate) fn held(&self) -> Vec<u8> {
        let (front, back) = self.tail.as_slices();
        [self.head.as_slice(), front, back].concat()
    }

    pub(crate) fn captured(&self) -> CapturedOutput {
        CapturedOutput {
            head: self.head.clone(),
            tail: self.tail.iter().copied().collect(),
            bytes: self.bytes,
            lines: self.counts_with(&[]).1,
            spill: None,
            spill_problem: None,
        }
    }

    /// Takes everything and starts over, but keeps an incomplete control sequence or character at
    /// the end: split in two, it would be shown as garbage.
    pub(crate) fn take_whole(&mut self) -> CapturedOutput {
        let end: Vec<u8> = if self.tail.is_empty() {
            self.head[self.head.len().saturating_sub(LONGEST_OPEN)..].to_vec()
        } else {
            self.tail
                .range(self.tail.len().saturating_sub(LONGEST_OPEN)..)
                .copied()
                .collect()
        };
        let open = open_end(&end).to_vec();
        self.shorten(open.len());
        let taken = self.take_all();
        self.push(&open);
        taken
    }

    /// Takes everything and starts over.
    pub(crate) fn take_all(&mut self) -> CapturedOutput {
        let taken = self.captured();
        *self = Self {
            most: self.most,
            ..Self::default()
        };
        taken
    }

    /// Removes the last `count` bytes, which must not contain a line end.
    fn shorten(&mut self, count: usize) {
        if self.tail.is_empty() {
            self.head.truncate(self.head.len() - count);
        } else {
            self.tail.truncate(self.tail.len() - count);
        }
        self.bytes -= count as u64;
        self.last = self.tail.back().or(self.head.last()).copied();
    }
}

/// Returns the incomplete control sequence or character at the end of `bytes`.
fn open_end(bytes: &[u8]) -> &[u8] {
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
    &bytes[without_open_character(bytes).len()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(bytes: usize) -> Ends {
        Ends::new(CutLimits {
            lines: 1_000,
            bytes,
        })
    }

    #[test]
    fn what_is_open_waits_for_its_end() {
        for (first, shown, second, then) in [
            ("red: \x1b[3", "red: ", "1mred", "\x1b[31mred"),
            ("esc\x1b", "esc", "[0mx", "\x1b[0mx"),
            ("title\x1b]0;ab", "title", "c\x07x", "\x1b]0;abc\x07x"),
            ("plain", "plain", "more", "more"),
            ("\x1b[1mdone", "\x1b[1mdone", "!", "!"),
        ] {
            for room in [4_096, 12] {
                let mut ends = ends(room);
                ends.push(first.as_bytes());
                let taken = ends.take_whole();
                let all = [taken.head, taken.tail].concat();
                assert_eq!(String::from_utf8(all).unwrap(), shown, "{first:?}");
                assert_eq!(taken.bytes, shown.len() as u64);
                ends.push(second.as_bytes());
                assert_eq!(ends.bytes, then.len() as u64);
                assert_eq!(String::from_utf8(ends.held()).unwrap(), then);
            }
        }
    }

    #[test]
    fn a_torn_character_waits_for_its_rest() {
        let mut ends = ends(100);
        let [a, b] = [0xc3, 0xa9];
        ends.push(&[b'x', a]);
        assert_eq!(ends.take_whole().head, b"x");
        ends.push(&[b]);
        assert_eq!(ends.take_whole().head, "é".as_bytes());
        assert_eq!(ends.take_whole().bytes, 0);
    }

    #[test]
    fn at_the_end_nothing_is_held_back() {
        let mut ends = ends(100);
        ends.push(b"half \x1b[");
        assert_eq!(ends.take_all().bytes, 7);
        assert_eq!(ends.bytes, 0);
    }
}
