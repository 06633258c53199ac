//! The rows of the reply that is arriving, so that a request that is sent again does not print its
//! answer twice.
//!
//! Invariant: of two tries with the same text only one is on the screen; where the second says
//! something else, that shows.

use crate::line::StyledLine;

#[derive(Debug, Default)]
pub(super) struct ReplyRows {
    /// Of the try that is arriving.
    rows: Vec<StyledLine>,
    /// Of the one before it that was lost: these are on the screen.
    lost: Vec<StyledLine>,
}

/// What there is to print.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FreshRows {
    /// These, below what is there.
    Next(Vec<StyledLine>),
    /// These: it is another answer than the one that began above.
    Again(Vec<StyledLine>),
}

impl ReplyRows {
    /// The try that was arriving is lost.
    pub(super) fn lose(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if self.lost.is_empty() {
            self.lost = rows;
        }
    }

    /// Takes finished rows; gives those that are not on the screen yet.
    pub(super) fn take(&mut self, rows: Vec<StyledLine>) -> FreshRows {
        self.rows.extend(rows.iter().cloned());
        if self.lost.is_empty() {
            return FreshRows::Next(rows);
        }
        let both = self.rows.len().min(self.lost.len());
        if self.rows[..both] != self.lost[..both] {
            self.lost.clear();
            return FreshRows::Again(self.rows.clone());
        }
        let next = self.rows[both..].to_vec();
        if self.rows.len() >= self.lost.len() {
            self.lost.clear();
        }
        FreshRows::Next(next)
    }

    /// The reply is over; gives what is not on the screen yet.
    pub(super) fn end(&mut self) -> FreshRows {
        let Self { rows, lost } = std::mem::take(self);
        if lost.is_empty() || rows.is_empty() {
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
            .map(|word| StyledLine::of(word, TextStyle::Plain))
            .collect()
    }

    #[test]
    fn the_same_answer_is_printed_once() {
        let mut reply = ReplyRows::default();
        assert_eq!(reply.take(rows("a b")), FreshRows::Next(rows("a b")));
        reply.lose();
        assert_eq!(reply.take(rows("a")), FreshRows::Next(Vec::new()));
        reply.lose();
        assert_eq!(reply.take(rows("a b c")), FreshRows::Next(rows("c")));
        assert_eq!(reply.take(rows("d")), FreshRows::Next(rows("d")));
        assert_eq!(reply.end(), FreshRows::Next(Vec::new()));
    }

    #[test]
    fn another_answer_is_printed_whole() {
        let mut reply = ReplyRows::default();
        reply.take(rows("a b c"));
        reply.lose();
        assert_eq!(reply.take(rows("a")), FreshRows::Next(Vec::new()));
        assert_eq!(reply.take(rows("x")), FreshRows::Again(rows("a x")));
        reply.lose();
        assert_eq!(reply.take(rows("a")), FreshRows::Next(Vec::new()));
        assert_eq!(
            reply.end(),
            FreshRows::Again(rows("a")),
            "it is shorter than the one above"
        );
    }
}
