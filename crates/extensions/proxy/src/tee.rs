//! A body that passes through and is remembered, and what is remembered of an exchange.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use haft_types::Api;
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// What is held in memory for the record at most; traffic beyond it passes unrecorded.
const MOST_HELD: usize = 512 << 20;

/// Something that passed, on its way to the [`TrafficRecorder`](crate::TrafficRecorder).
#[derive(Debug)]
pub enum Traffic {
    /// A request of one of the four APIs has been sent in full.
    Request(SeenRequest),
    /// Its reply has ended, one way or another.
    Reply(SeenReply),
    /// Something else passed.
    Other {
        /// The method of the request.
        method: String,
        /// Its path, with keys masked.
        path: String,
        /// The status of the reply.
        status: u16,
    },
}

/// A request that passed.
#[derive(Debug)]
pub struct SeenRequest {
    pub(crate) exchange: u64,
    pub(crate) api: Api,
    pub(crate) method: String,
    pub(crate) path: String,
    /// Where it went: host and port.
    pub(crate) upstream: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: CapturedBody,
}

/// A reply that passed.
#[derive(Debug)]
pub struct SeenReply {
    pub(crate) exchange: u64,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: CapturedBody,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) elapsed: Duration,
}

/// The bytes of a body, as far as they came. Dropping it gives its memory back.
#[derive(Debug, Default)]
pub(crate) struct CapturedBody {
    chunks: Vec<Bytes>,
    size: usize,
    held: Arc<AtomicUsize>,
    /// Whether it came to its end.
    pub(crate) is_whole: bool,
    /// Whether there was no room for it.
    pub(crate) is_too_large: bool,
}

impl CapturedBody {
    pub(crate) fn new(held: &Arc<AtomicUsize>) -> Self {
        let chunks = Vec::new();
        let held = Arc::clone(held);
        Self {
            chunks,
            size: 0,
            held,
            is_whole: false,
            is_too_large: false,
        }
    }

    fn take(&mut self, chunk: &Bytes) {
        if self.is_too_large {
            return;
        }
        if self.held.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len() > MOST_HELD {
            self.held.fetch_sub(chunk.len(), Ordering::Relaxed);
            self.is_too_large = true;
            self.chunks.clear();
            return;
        }
        self.size += chunk.len();
        self.chunks.push(chunk.clone());
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.size == 0
    }
}

impl Drop for CapturedBody {
    fn drop(&mut self) {
        self.held.fetch_sub(self.size, Ordering::Relaxed);
    }
}

type Ended = Box<dyn FnOnce(CapturedBody) + Send>;

/// A body as it comes, which says at its end what it held.
pub(crate) struct Tee {
    inner: Incoming,
    captured: CapturedBody,
    ended: Option<Ended>,
}

impl Tee {
    pub(crate) fn new(inner: Incoming, captured: CapturedBody, ended: Ended) -> Self {
        let mut tee = Self {
            inner,
            captured,
            ended: Some(ended),
        };
        if tee.inner.is_end_stream() {
            tee.end(true);
        }
        tee
    }

    /// A body that nobody remembers.
    pub(crate) fn plain(inner: Incoming) -> Self {
        Self {
            inner,
            captured: CapturedBody::default(),
            ended: None,
        }
    }

    fn end(&mut self, is_whole: bool) {
        if let Some(ended) = self.ended.take() {
            let mut captured = std::mem::take(&mut self.captured);
            captured.is_whole = is_whole;
            ended(captured);
        }
    }
}

impl Body for Tee {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref().filter(|_| self.ended.is_some()) {
                    self.captured.take(data);
                }
                // Whoever knows the length does not ask again behind the last byte.
                if self.inner.is_end_stream() {
                    self.end(true);
                }
            }
            Poll::Ready(Some(Err(_))) => self.end(false),
            Poll::Ready(None) => self.end(true),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        self.end(false);
    }
}
