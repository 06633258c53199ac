//! Bodies that record the bytes they forward, and the captured requests and replies.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use haft_types::Api;
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// The maximum number of bytes that are held in memory until the recorder has processed them.
/// Traffic beyond this limit is forwarded without being recorded.
const MAX_HELD_BYTES: usize = 512 << 20;

/// An observed request or reply that is passed to the [`TrafficRecorder`](crate::TrafficRecorder).
#[derive(Debug)]
pub enum Traffic {
    /// A request to one of the four supported APIs was forwarded, completely or in part.
    Request(SeenRequest),
    /// The reply to a request to a supported API has ended, completely or prematurely.
    Reply(SeenReply),
    /// A request was rewritten. This is the request as it was received; the request that was
    /// forwarded follows.
    Received(SeenRequest),
    /// A request that is not addressed to a supported API was forwarded, and its reply was
    /// received.
    Other {
        /// The HTTP method of the request.
        method: String,
        /// The path of the request, with keys masked.
        path: String,
        /// The HTTP status of the reply.
        status: u16,
    },
}

/// A request that was forwarded, with its captured body.
#[derive(Debug)]
pub struct SeenRequest {
    pub(crate) exchange: u64,
    pub(crate) api: Api,
    pub(crate) method: String,
    pub(crate) path: String,
    /// The host and port of the upstream server.
    pub(crate) upstream: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: CapturedBody,
    /// The name of the folder with the decisions about the request's conversation, if results are
    /// cleared in it.
    pub(crate) saved_in: Option<String>,
}

/// A reply that was forwarded, with its captured body.
#[derive(Debug)]
pub struct SeenReply {
    pub(crate) exchange: u64,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: CapturedBody,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) elapsed: Duration,
}

/// The captured bytes of a request or reply body. Dropping this value makes its share of the memory
/// limit available again.
#[derive(Debug, Default)]
pub(crate) struct CapturedBody {
    chunks: Vec<Bytes>,
    size: usize,
    held_bytes: Arc<AtomicUsize>,
    /// True if the body arrived completely.
    pub(crate) is_whole: bool,
    /// True if the body was not captured because the memory limit was reached.
    pub(crate) is_too_large: bool,
}

impl CapturedBody {
    pub(crate) fn new(held: &Arc<AtomicUsize>) -> Self {
        let chunks = Vec::new();
        let held_bytes = Arc::clone(held);
        Self {
            chunks,
            size: 0,
            held_bytes,
            is_whole: false,
            is_too_large: false,
        }
    }

    /// Captures a whole body.
    pub(crate) fn from_bytes(held: &Arc<AtomicUsize>, bytes: &Bytes) -> Self {
        let mut captured = Self::new(held);
        captured.push_chunk(bytes);
        captured.is_whole = true;
        captured
    }

    fn push_chunk(&mut self, chunk: &Bytes) {
        if self.is_too_large {
            return;
        }
        if self.held_bytes.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len() > MAX_HELD_BYTES
        {
            self.held_bytes.fetch_sub(chunk.len(), Ordering::Relaxed);
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
        self.held_bytes.fetch_sub(self.size, Ordering::Relaxed);
    }
}

type Ended = Box<dyn FnOnce(CapturedBody) + Send>;

/// A body that is captured while it is forwarded. When it ends, the captured bytes are passed to a
/// callback.
pub(crate) struct Tee {
    inner: Incoming,
    captured: CapturedBody,
    on_end: Option<Ended>,
}

impl Tee {
    pub(crate) fn new(inner: Incoming, captured: CapturedBody, ended: Ended) -> Self {
        let mut tee = Self {
            inner,
            captured,
            on_end: Some(ended),
        };
        if tee.inner.is_end_stream() {
            tee.finish_capture(true);
        }
        tee
    }

    /// Creates a body that is forwarded without being captured.
    pub(crate) fn without_capture(inner: Incoming) -> Self {
        Self {
            inner,
            captured: CapturedBody::default(),
            on_end: None,
        }
    }

    fn finish_capture(&mut self, is_whole: bool) {
        if let Some(ended) = self.on_end.take() {
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
                if let Some(data) = frame.data_ref().filter(|_| self.on_end.is_some()) {
                    self.captured.push_chunk(data);
                }
                // A reader that knows the length does not poll again after the last byte.
                if self.inner.is_end_stream() {
                    self.finish_capture(true);
                }
            }
            Poll::Ready(Some(Err(_))) => self.finish_capture(false),
            Poll::Ready(None) => self.finish_capture(true),
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
        self.finish_capture(false);
    }
}
