//! Tests of event streams: each file of `fixtures/sse` gives the events listed in the file beside
//! it, for every split.

use std::convert::Infallible;
use std::path::Path;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use serde_json::{Map, Value, json};
use sse_stream::{Error, Sse, SseByteStream};

fn read(pieces: impl IntoIterator<Item = Bytes>) -> Vec<Result<Sse, Error>> {
    let pieces: Vec<_> = pieces.into_iter().map(Ok::<_, Infallible>).collect();
    // All pieces are available, so the future completes at once.
    SseByteStream::new(stream::iter(pieces))
        .collect()
        .now_or_never()
        .unwrap()
}

fn events(pieces: impl IntoIterator<Item = Bytes>) -> Vec<Sse> {
    read(pieces).into_iter().collect::<Result<_, _>>().unwrap()
}

/// Returns the events with data, as JSON; decoders ignore the others.
fn events_as_json(events: Vec<Sse>) -> Value {
    let show = |event: Sse| {
        let data = event.data?;
        let mut shown = Map::new();
        shown.extend(event.event.map(|name| ("event".to_owned(), name.into())));
        shown.extend(event.id.map(|id| ("id".to_owned(), id.into())));
        shown.insert("data".to_owned(), data.into());
        Some(Value::Object(shown))
    };
    events.into_iter().filter_map(show).collect()
}

#[test]
fn sse_fixtures_give_their_events_for_every_split() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sse");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sse") {
            continue;
        }
        seen += 1;
        let name = path.display();
        let raw = Bytes::from(std::fs::read(&path).unwrap());
        let expected = std::fs::read_to_string(path.with_extension("json")).unwrap();
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(events_as_json(events([raw.clone()])), expected, "{name}");
        for cut in 0..=raw.len() {
            let pieces = [raw.slice(..cut), raw.slice(cut..)];
            assert_eq!(
                events_as_json(events(pieces)),
                expected,
                "{name} cut at {cut}"
            );
        }
        let bytes = (0..raw.len()).map(|at| raw.slice(at..=at));
        assert_eq!(
            events_as_json(events(bytes)),
            expected,
            "{name} byte by byte"
        );
    }
    assert!(seen >= 20, "only {seen} fixtures found");
}

#[test]
fn sse_line_of_a_megabyte_is_read_whole() {
    let line = "0123456789abcdef".repeat(64 * 1024);
    let raw = Bytes::from(format!(
        ": {line}\nid: {line}\ndata: {line}\ndata: {line}\n\n"
    ));
    let expected = json!([{ "id": line, "data": format!("{line}\n{line}") }]);
    for size in [raw.len(), 65_537, 1_000] {
        let pieces = (0..raw.len())
            .step_by(size)
            .map(|start| raw.slice(start..raw.len().min(start + size)));
        assert_eq!(
            events_as_json(events(pieces)),
            expected,
            "in pieces of {size}"
        );
    }
}

/// No byte is replaced: invalid UTF-8 ends the stream with an error.
#[test]
fn sse_rejects_invalid_utf8() {
    let raw = Bytes::from_static(b"data: good\n\ndata: b\xffd\n\ndata: never\n\n");
    for cut in 0..=raw.len() {
        let read = read([raw.slice(..cut), raw.slice(cut..)]);
        assert_eq!(read.len(), 2, "cut at {cut}");
        assert!(read[0].is_ok() && read[1].is_err(), "cut at {cut}");
    }
}
