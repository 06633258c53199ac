//! The finished rows of the reply that is arriving, so that a request that is sent again doesn't
//! print its reply twice.
//!
//! Invariant: of two attempts with equal text only one is on the screen; if the second attempt
//! differs, it is printed in full.

use crate::line::StyledLine;

#[derive(Debug, Default)]
pub(super) struct ReplyRows {
    /// The rows of the current attempt.
    rows: Vec<StyledLine>,
    /// The rows of an earlier, discarded attempt, which are already on the screen.
    discarded: Vec<StyledLine>,
}

/// Rows of a reply that are not on the screen yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FreshRows {
    /// Rows that continue the rows on the screen.
    Next(Vec<StyledLine>),
    /// All rows of the current attempt, because it differs from the attempt on the screen.
    Again(Vec<StyledLine>),
}

impl ReplyRows {
    /// Discards the current attempt.
    pub(super) fn discard_attempt(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if self.discarded.is_empty() {
            self.discarded = rows;
        }
    }

    /// Adds finished rows and returns those that aren't on the screen yet.
    pub(super) fn add_rows(&mut self, rows: Vec<StyledLine>) -> FreshRows {
        self.rows.extend(rows.iter().cloned());
        if self.discarded.is_empty() {
            return FreshRows::Next(rows);
        }
        let common = self.rows.len().min(self.discarded.len());
        if self.rows[..common] != self.discarded[..common] {
            self.discarded.clear();
            return FreshRows::Again(self.rows.clone());
        }
        let next = self.rows[common..].to_vec();
        if self.rows.len() >= self.discarded.len() {
            self.discarded.clear();
        }
        FreshRows::Next(next)
    }

    /// Ends the reply and returns the rows that aren't on the screen yet.
    pub(super) fn finish_reply(&mut self) -> FreshRows {
        let Self { rows, discarded } = std::mem::take(self);
        if discarded.is_empty() || rows.is_empty() {
            FreshRows::Next(Vec::new())
        } else {
            FreshRows::Again(rows)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::TextStyle;

    fn rows(text: &str) -> Vec<StyledLine> {
        text.split_whitespace()
            .map(|word| StyledLine::new(word, TextStyle::Plain))
            .collect()
    }

    #[test]
    fn equal_attempts_are_printed_once() {
        let mut reply = ReplyRows::default();
        assert_eq!(reply.add_rows(rows("a b")), FreshRows::Next(rows("a b")));
        reply.discard_attempt();
        assert_eq!(reply.add_rows(rows("a")), FreshRows::Next(Vec::new()));
        reply.discard_attempt();
        assert_eq!(reply.add_rows(rows("a b c")), FreshRows::Next(rows("c")));
        assert_eq!(reply.add_rows(rows("d")), FreshRows::Next(rows("d")));
        assert_eq!(reply.finish_reply(), FreshRows::Next(Vec::new()));
    }

    #[test]
    fn different_attempts_are_printed_in_full() {
        let mut reply = ReplyRows::default();
        reply.add_rows(rows("a b c"));
        reply.discard_attempt();
        assert_eq!(reply.add_rows(rows("a")), FreshRows::Next(Vec::new()));
        assert_eq!(reply.add_rows(rows("x")), FreshRows::Again(rows("a x")));
        reply.discard_attempt();
        assert_eq!(reply.add_rows(rows("a")), FreshRows::Next(Vec::new()));
        assert_eq!(
            reply.finish_reply(),
            FreshRows::Again(rows("a")),
            "it is shorter than the one above"
        );
    }
}
