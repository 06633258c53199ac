//! The property that fuzzing and tests check on streamed replies.

use std::convert::Infallible;
use std::sync::LazyLock;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use haft_types::{Api, Part, Request, ToolSet};
use sse_stream::{Error, Sse, SseByteStream};

use super::{CallIds, ReplyProgress, create_decoder};
use crate::reply::Delta;
use crate::tokens::O200k;

/// An empty request, which the replies answer.
static REQUEST: LazyLock<Request> = LazyLock::new(|| Request {
    segments: Vec::new(),
    tools: ToolSet::new(Vec::new(), &O200k),
    max_output_tokens: None,
    cache_key: None,
});

/// Checks any body of an event stream: the events depend neither on the pieces in which the body
/// arrives nor on the line endings, and a decoder reports exactly the text of its reply.
///
/// # Panics
///
/// If the property does not hold.
pub fn check_event_stream(body: &[u8], piece: usize) {
    let events = read_events(body, body.len());
    assert_eq!(events, read_events(body, piece), "in pieces of {piece}");
    if !body.contains(&b'\r') {
        let crlf: Vec<u8> = body
            .iter()
            .flat_map(|byte| match byte {
                b'\n' => b"\r\n".as_slice(),
                other => std::slice::from_ref(other),
            })
            .copied()
            .collect();
        assert_eq!(events, read_events(&crlf, piece), "with CR LF");
    }
    let data: Vec<&str> = events
        .iter()
        .filter_map(|event| event.as_deref().ok())
        .collect();
    for api in Api::ALL {
        check_reply(api, &data);
    }
}

/// Returns the data of the events, and the error that ends them.
fn read_events(body: &[u8], piece: usize) -> Vec<Result<String, String>> {
    let pieces: Vec<_> = body
        .chunks(piece.max(1))
        .map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece)))
        .collect();
    let mut events = SseByteStream::new(stream::iter(pieces));
    let mut read = Vec::new();
    // All pieces are available, so each event is, too.
    while let Some(Some(event)) = events.next().now_or_never() {
        let event: Result<Sse, Error> = event;
        match event {
            Ok(event) => read.extend(event.data.map(Ok)),
            Err(error) => {
                // The position in the message depends on the pieces.
                let kind = match error {
                    Error::Utf8Parse(_) => "utf8",
                    _ => "other",
                };
                read.push(Err(kind.to_owned()));
                break;
            }
        }
    }
    read
}

/// Checks a reply decoded from the data of its events: the pieces of text that arrived are the text
/// of the reply.
fn check_reply(api: Api, events: &[&str]) {
    let mut decoder = create_decoder(api, CallIds::for_reply_to(&REQUEST));
    let mut arrived = String::new();
    let mut ended = false;
    for data in events {
        let mut sink = |delta| match delta {
            Delta::Text(piece) => arrived += &piece,
            Delta::Thinking(_)
            | Delta::CallStarted { .. }
            | Delta::CallArguments { .. }
            | Delta::CallFinished { .. }
            | Delta::Retry { .. }
            | Delta::FieldOmitted { .. } => {}
        };
        match decoder.read_event(data, &mut sink) {
            Ok(ReplyProgress::Going) => {}
            Ok(ReplyProgress::Ended) => ended = true,
            Ok(ReplyProgress::Done) => {
                ended = true;
                break;
            }
            Err(_) => return,
        }
    }
    // The last events of the Responses API repeat the text, and their version counts.
    if ended && api != Api::OpenaiResponses {
        let reply = decoder.finish();
        let text: String = reply
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text, .. } => Some(text.as_str()),
                Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => {
                    None
                }
            })
            .collect();
        assert_eq!(arrived, text, "{api}");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Every seed of the fuzz target, including its findings. The first byte is the length of the
    /// pieces.
    #[test]
    fn check_event_stream_holds_for_the_seeds_of_its_fuzz_target() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/event_stream");
        for entry in std::fs::read_dir(folder).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            if let Some((piece, body)) = bytes.split_first() {
                super::check_event_stream(body, usize::from(*piece % 16) + 1);
            }
        }
    }
}
