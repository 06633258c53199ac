//! Records when the bytes of each request and reply passed the socket, for benchmarks.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The times of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The time at which the first byte of the request's head was read.
    pub received: Instant,
    /// The time at which the most recent byte of the reply was written; `None` before the first
    /// byte.
    pub replied: Option<Instant>,
}

/// The times of all requests of a server, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timings(Arc<Mutex<Vec<Timing>>>);

impl Timings {
    pub(crate) fn to_vec(&self) -> Vec<Timing> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn begin_request(&self, received: Instant) -> usize {
        let mut timings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        timings.push(Timing {
            received,
            replied: None,
        });
        timings.len() - 1
    }

    fn mark_written(&self, request: usize) {
        let mut timings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(timing) = timings.get_mut(request) {
            timing.replied = Some(Instant::now());
        }
    }
}

/// The phase of the request that a connection is handling.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No request has begun.
    Idle,
    /// Bytes of the request have been read, but its reply hasn't begun. Contains the time of the
    /// first byte.
    Reading(Instant),
    /// The reply is being written. Contains the index of its [`Timing`].
    Replying(usize),
}

/// The phase of one connection, shared between its socket and its handler.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    timings: Timings,
    phase: Arc<Mutex<Phase>>,
}

impl Watch {
    pub(crate) fn new(timings: Timings) -> Self {
        Self {
            timings,
            phase: Arc::new(Mutex::new(Phase::Idle)),
        }
    }

    /// Records that the request was read completely, so that bytes written from now on belong to
    /// its reply.
    pub(crate) fn begin_reply(&self) {
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        if let Phase::Reading(received) = *phase {
            *phase = Phase::Replying(self.timings.begin_request(received));
        }
    }

    fn mark_read(&self) {
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        // Bytes that arrive during or after a reply begin the next request.
        if matches!(*phase, Phase::Idle | Phase::Replying(_)) {
            *phase = Phase::Reading(Instant::now());
        }
    }

    fn mark_written(&self) {
        let phase = *self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        if let Phase::Replying(request) = phase {
            self.timings.mark_written(request);
        }
    }
}

/// A socket that reports to its [`Watch`], if it has one, when bytes are read and written.
pub(crate) struct Socket {
    stream: TcpStream,
    watch: Option<Watch>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, watch: Option<Watch>) -> Self {
        Self { stream, watch }
    }

    fn mark_written(&self) {
        if let Some(watch) = &self.watch {
            watch.mark_written();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before
            && let Some(watch) = &self.watch
        {
            watch.mark_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.mark_written();
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices))?;
        self.mark_written();
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
