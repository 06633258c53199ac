//! A response body sent piece by piece, perhaps slowly, perhaps cut off.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::script::Gate;

/// The connection is to be dropped here, as the script says.
#[derive(Debug, thiserror::Error)]
#[error("dropped as the script says")]
pub(crate) struct Dropped;

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As it should.
    Clean,
    /// The connection is dropped.
    Drop,
}

/// Whether the client is told the length in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// A stream, whose end is not known.
    Unknown,
    /// A body in one piece.
    Known,
}

/// The body. Each piece reaches the socket before the next is looked at.
pub(crate) struct ScriptBody {
    pieces: VecDeque<Bytes>,
    pause: Duration,
    end: End,
    length: Length,
    between: Between,
    /// How many further pieces are sent before the gate holds the rest.
    hold: Option<(usize, Gate)>,
}

/// What has to happen before the next piece.
enum Between {
    Nothing,
    /// Let what was given be written: the connection flushes when a body has nothing ready.
    Flush,
    Pause(Pin<Box<Sleep>>),
    Hold(Pin<Box<dyn Future<Output = ()> + Send>>),
}

impl ScriptBody {
    pub(crate) fn new(
        pieces: impl Into<VecDeque<Bytes>>,
        pause: Duration,
        end: End,
        length: Length,
    ) -> Self {
        let pieces = pieces.into();
        // The head of the response must be written before a drop, too.
        let between = if pieces.is_empty() && end == End::Drop {
            Between::Flush
        } else {
            Between::Nothing
        };
        Self {
            pieces,
            pause,
            end,
            length,
            between,
            hold: None,
        }
    }

    /// The same body, of which the gate holds everything after the first `pieces`.
    pub(crate) fn held_after(mut self, pieces: usize, gate: Gate) -> Self {
        self.hold = Some((pieces, gate));
        self
    }
}

impl Body for ScriptBody {
    type Data = Bytes;
    type Error = Dropped;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Dropped>>> {
        match &mut self.between {
            Between::Nothing => {}
            Between::Flush => {
                self.between = Between::Nothing;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Between::Pause(sleep) => ready!(sleep.as_mut().poll(context)),
            Between::Hold(opened) => ready!(opened.as_mut().poll(context)),
        }
        match self.hold.take() {
            Some((0, gate)) => {
                self.between = Between::Hold(Box::pin(gate.opened()));
                return self.poll_frame(context);
            }
            Some((left, gate)) => self.hold = Some((left - 1, gate)),
            None => {}
        }
        let Some(piece) = self.pieces.pop_front() else {
            return Poll::Ready((self.end == End::Drop).then_some(Err(Dropped)));
        };
        self.between = match (self.pieces.is_empty(), self.end) {
            // The end of the body travels with its last piece.
            (true, End::Clean) => Between::Nothing,
            (true, End::Drop) => Between::Flush,
            (false, _) if self.pause.is_zero() => Between::Flush,
            (false, _) => Between::Pause(Box::pin(tokio::time::sleep(self.pause))),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.end == End::Clean
    }

    fn size_hint(&self) -> SizeHint {
        match self.length {
            Length::Known => {
                SizeHint::with_exact(self.pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Length::Unknown => SizeHint::default(),
        }
    }
}
