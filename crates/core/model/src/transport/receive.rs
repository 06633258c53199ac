//! Reads the body of a successful answer: an event stream, or one JSON document.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use sse_stream::SseByteStream;
use tokio::time::timeout;

use super::{ExchangeFailure, HttpTransport};
use crate::error::ModelError;
use crate::wire::{Decode, ReplyProgress, Sink};

/// The maximum size of a reply in bytes; a server that sends more is broken.
const MAX_REPLY_BYTES: usize = 256 * 1024 * 1024;
/// The time limit for usage data that follows the end of the message.
const USAGE_TIMEOUT: Duration = Duration::from_secs(3);
/// The time limit for the end of the body after the last expected event. The connection can be
/// reused only if the whole body was read.
const TAIL_TIMEOUT: Duration = Duration::from_millis(50);
/// The number of idle timeouts after which a reply that consists only of comments is given up. A
/// provider sends comments while a request is queued, but a gateway in front of a dead provider
/// sends them forever.
const KEEP_ALIVE_FACTOR: u32 = 5;
/// The maximum number of bytes of an unexpected answer that are read for the error message.
const MAX_PREVIEW_BYTES: usize = 64 * 1024;

/// The reason why a body could not be read to its end.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("no data for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("more than {MAX_REPLY_BYTES} bytes")]
    TooLong,
    #[error(transparent)]
    Lost(#[from] reqwest::Error),
}

impl HttpTransport {
    pub(super) async fn read_streamed_reply(
        &self,
        response: Response,
        decoder: &mut dyn Decode,
        sink: Sink<'_>,
    ) -> Result<(), ExchangeFailure> {
        let kind = content_type(&response);
        // Some servers omit the content type; the absence of events then shows the error.
        if kind
            .as_deref()
            .is_some_and(|kind| kind != "text/event-stream")
        {
            let start = read_preview(response).await;
            return Err(self.not_an_api_failure(kind.as_deref(), &start));
        }
        let mut events = Box::pin(SseByteStream::new(Box::pin(self.body_chunks(response))));
        let mut progress = ReplyProgress::Going;
        let mut any = false;
        let kept_alive = self
            .first_byte_timeout
            .max(self.idle_timeout * KEEP_ALIVE_FACTOR);
        loop {
            let next = match progress {
                ReplyProgress::Going => match timeout(kept_alive, events.next()).await {
                    Ok(next) => next,
                    Err(_) => return Err(convert_body_error(BodyError::Silent(kept_alive))),
                },
                // The message is complete: usage is welcome but not required.
                ReplyProgress::Ended => timeout(USAGE_TIMEOUT, events.next()).await.ok().flatten(),
                ReplyProgress::Done => timeout(TAIL_TIMEOUT, events.next()).await.ok().flatten(),
            };
            match (next, progress) {
                (Some(Ok(event)), ReplyProgress::Going | ReplyProgress::Ended) => {
                    if let Some(data) = event.data.filter(|data| !data.trim().is_empty()) {
                        any = true;
                        progress = decoder.read_event(&data, sink)?;
                    }
                }
                (Some(Ok(_)), ReplyProgress::Done) => {}
                (Some(Err(error)), ReplyProgress::Going) => {
                    return Err(convert_stream_error(error));
                }
                (Some(Err(sse_stream::Error::Utf8Parse(error))), ReplyProgress::Ended) => {
                    return Err(ModelError::BadReply {
                        problem: format!("the reply is not UTF-8: {error}"),
                    }
                    .into());
                }
                (None | Some(Err(_)), ReplyProgress::Ended | ReplyProgress::Done) => return Ok(()),
                (None, ReplyProgress::Going) if any => {
                    return Err(ModelError::Dropped {
                        reason: "the stream ended early".into(),
                    }
                    .into());
                }
                (None, ReplyProgress::Going) => {
                    return Err(self.not_an_api_failure(kind.as_deref(), b""));
                }
            }
        }
    }

    pub(super) async fn read_whole_reply(
        &self,
        response: Response,
        decoder: &mut dyn Decode,
        sink: Sink<'_>,
    ) -> Result<(), ExchangeFailure> {
        let kind = content_type(&response);
        let body = self.read_whole_body(response).await?;
        if !body.trim_ascii_start().starts_with(b"{") {
            return Err(self.not_an_api_failure(kind.as_deref(), &body));
        }
        let text = std::str::from_utf8(&body).map_err(|error| ModelError::BadReply {
            problem: format!("the reply is not UTF-8: {error}"),
        })?;
        Ok(decoder.read_body(text, sink)?)
    }

    /// Reads a body to its end, with the time and size limits of [`Self::body_chunks`].
    pub(super) async fn read_whole_body(
        &self,
        response: Response,
    ) -> Result<Vec<u8>, ExchangeFailure> {
        let mut body = Vec::new();
        let mut chunks = Box::pin(self.body_chunks(response));
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(convert_body_error)?);
        }
        Ok(body)
    }

    /// Returns the chunks of a body. The first-byte timeout applies to the first chunk, the idle
    /// timeout to each later chunk. Comments that only keep the connection alive count as data.
    fn body_chunks(
        &self,
        response: Response,
    ) -> impl Stream<Item = Result<Bytes, BodyError>> + use<> {
        let first = self.first_byte_timeout;
        let idle = self.idle_timeout;
        let state = (response.bytes_stream(), first, 0_usize);
        stream::unfold(Some(state), move |state| async move {
            let (mut chunks, limit, read) = state?;
            match timeout(limit, chunks.next()).await {
                Err(_) => Some((Err(BodyError::Silent(limit)), None)),
                Ok(None) => None,
                Ok(Some(Err(error))) => Some((Err(error.without_url().into()), None)),
                Ok(Some(Ok(chunk))) => {
                    let read = read + chunk.len();
                    if read > MAX_REPLY_BYTES {
                        return Some((Err(BodyError::TooLong), None));
                    }
                    Some((Ok(chunk), Some((chunks, idle, read))))
                }
            }
        })
    }
}

fn content_type(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = value
        .split(';')
        .next()
        .unwrap_or(value)
        .trim()
        .to_ascii_lowercase();
    (!essence.is_empty()).then_some(essence)
}

/// Reads the beginning of an unexpected answer, for an error message.
pub(super) async fn read_preview(mut response: Response) -> Vec<u8> {
    let mut start = Vec::new();
    while start.len() < MAX_PREVIEW_BYTES {
        match timeout(Duration::from_secs(5), response.chunk()).await {
            Ok(Ok(Some(chunk))) => start.extend_from_slice(&chunk),
            Ok(Ok(None) | Err(_)) | Err(_) => break,
        }
    }
    start
}

fn convert_stream_error(error: sse_stream::Error) -> ExchangeFailure {
    match error {
        sse_stream::Error::Body(source) => match source.downcast::<BodyError>() {
            Ok(error) => convert_body_error(*error),
            Err(source) => ModelError::Dropped {
                reason: source.to_string(),
            }
            .into(),
        },
        other => ModelError::BadReply {
            problem: other.to_string(),
        }
        .into(),
    }
}

fn convert_body_error(error: BodyError) -> ExchangeFailure {
    match error {
        BodyError::Silent(waited) => ModelError::Timeout {
            waited,
            awaited: "the rest of the reply",
        }
        .into(),
        BodyError::TooLong => ModelError::BadReply {
            problem: error.to_string(),
        }
        .into(),
        BodyError::Lost(error) => ModelError::Dropped {
            reason: super::failure::root_cause_message(&error),
        }
        .into(),
    }
}

#[cfg(test)]
mod tests;
