//! A response body sent in pieces, optionally slowed down or cut off.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::script::Gate;

/// The error that ends a response body if the script drops the connection.
#[derive(Debug, thiserror::Error)]
#[error("dropped as the script says")]
pub(crate) struct Dropped;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Clean,
    /// The connection is dropped after the last piece.
    Drop,
}

/// Determines whether the response announces the length of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// The length is not announced, as for a stream.
    Unknown,
    Known,
}

/// A response body that is sent in pieces. Each piece is written to the socket before the next one
/// is polled.
pub(crate) struct ScriptBody {
    pieces: VecDeque<Bytes>,
    pause: Duration,
    end: End,
    length: Length,
    next_step: NextStep,
    /// The number of pieces that are sent in any case, and the gate that holds back the others.
    hold: Option<(usize, Gate)>,
}

/// The step to take before the next piece is sent.
enum NextStep {
    Send,
    /// The body reports once that no piece is ready, which makes hyper flush the connection.
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
        // The response head must be written even if the connection is dropped before the first
        // piece.
        let next_step = if pieces.is_empty() && end == End::Drop {
            NextStep::Flush
        } else {
            NextStep::Send
        };
        Self {
            pieces,
            pause,
            end,
            length,
            next_step,
            hold: None,
        }
    }

    /// Sends the first `pieces` pieces, and holds back the rest until `gate` opens.
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
        match &mut self.next_step {
            NextStep::Send => {}
            NextStep::Flush => {
                self.next_step = NextStep::Send;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            NextStep::Pause(sleep) => ready!(sleep.as_mut().poll(context)),
            NextStep::Hold(opened) => ready!(opened.as_mut().poll(context)),
        }
        match self.hold.take() {
            Some((0, gate)) => {
                self.next_step = NextStep::Hold(Box::pin(gate.wait_until_open()));
                return self.poll_frame(context);
            }
            Some((left, gate)) => self.hold = Some((left - 1, gate)),
            None => {}
        }
        let Some(piece) = self.pieces.pop_front() else {
            return Poll::Ready((self.end == End::Drop).then_some(Err(Dropped)));
        };
        self.next_step = match (self.pieces.is_empty(), self.end) {
            // The end of the body is sent together with its last piece.
            (true, End::Clean) => NextStep::Send,
            (true, End::Drop) => NextStep::Flush,
            (false, _) if self.pause.is_zero() => NextStep::Flush,
            (false, _) => NextStep::Pause(Box::pin(tokio::time::sleep(self.pause))),
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
