//! Compares recorded forms of replies, streamed and whole, with snapshots; the result must not
//! depend on the split into chunks.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use sse_stream::SseByteStream;

use super::*;
use crate::reply::Delta;
use crate::wire::{CallIds, Decode, ReplyProgress, create_decoder};

fn reply_files(api: Api, extension: &str) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(fixtures("replies").join(api.name()))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

fn new_decoder(api: Api) -> Box<dyn Decode> {
    let asked = request(
        vec![segment(
            message(Role::User, vec![Part::from_text("?")], None),
            false,
        )],
        vec![],
    );
    create_decoder(api, CallIds::for_reply_to(&asked))
}

/// Returns a text of the deltas followed by the reply or the error.
fn format_outcome(deltas: &[Delta], end: Result<Box<dyn Decode>, String>) -> String {
    let mut text = String::new();
    for delta in deltas {
        writeln!(text, "{delta:?}").unwrap();
    }
    match end {
        Err(reason) => writeln!(text, "-- {reason}").unwrap(),
        Ok(decoder) => {
            let decoded = decoder.finish();
            writeln!(text, "-- {:?} {:?}", decoded.stop, decoded.usage).unwrap();
            for part in &decoded.parts {
                writeln!(text, "{}", serde_json::to_string(part).unwrap()).unwrap();
            }
        }
    }
    text
}

fn decode_stream(api: Api, bytes: &[u8], chunk: usize) -> String {
    let chunks: Vec<_> = bytes
        .chunks(chunk)
        .map(|chunk| Ok::<_, Infallible>(Bytes::copy_from_slice(chunk)))
        .collect();
    let mut events = SseByteStream::new(stream::iter(chunks));
    let mut decoder = new_decoder(api);
    let mut deltas = Vec::new();
    let mut progress = ReplyProgress::Going;
    let mut sink = |delta| deltas.push(delta);
    let mut fault = None;
    while let Some(event) = events.next().now_or_never().unwrap() {
        let data = match event {
            Ok(event) => event.data.unwrap_or_default(),
            Err(error) => {
                fault = Some(error.to_string());
                break;
            }
        };
        match decoder.read_event(&data, &mut sink) {
            Ok(ReplyProgress::Done) => {
                progress = ReplyProgress::Done;
                break;
            }
            Ok(now) => progress = now,
            Err(error) => {
                fault = Some(format!("{error:?}"));
                break;
            }
        }
    }
    let end = match fault {
        Some(fault) => Err(fault),
        None if progress == ReplyProgress::Going => Err("dropped".to_owned()),
        None => Ok(decoder),
    };
    format_outcome(&deltas, end)
}

fn assert_matches_snapshot(path: &Path, account: &str) {
    let mut insta = insta::Settings::clone_current();
    insta.set_snapshot_path(path.parent().unwrap());
    insta.set_prepend_module_to_snapshot(false);
    insta.set_omit_expression(true);
    let name = path.file_name().unwrap().to_str().unwrap();
    insta.bind(|| insta::assert_snapshot!(name, account));
}

#[test]
fn decoder_reads_streams_as_in_the_snapshots_for_every_chunk_size() {
    for api in Api::ALL {
        for path in reply_files(api, "sse") {
            let bytes = std::fs::read(&path).unwrap();
            let whole = decode_stream(api, &bytes, bytes.len());
            assert_matches_snapshot(&path, &whole);
            for chunk in [1, 2, 3, 5, 7, 64] {
                assert_eq!(
                    decode_stream(api, &bytes, chunk),
                    whole,
                    "{} in chunks of {chunk}",
                    path.display()
                );
            }
        }
    }
}

/// Servers choose their line endings.
#[test]
fn decoder_accepts_crlf() {
    for api in Api::ALL {
        let path = fixtures("replies").join(api.name()).join("text.sse");
        let text = std::fs::read_to_string(path).unwrap();
        let whole = decode_stream(api, text.as_bytes(), text.len());
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(decode_stream(api, crlf.as_bytes(), 1), whole);
    }
}

#[test]
fn decoder_ends_the_reply_at_invalid_utf8() {
    for api in Api::ALL {
        let path = fixtures("replies").join(api.name()).join("text.sse");
        let mut bytes = std::fs::read(path).unwrap();
        let at = bytes
            .windows(2)
            .position(|pair| pair == "ü".as_bytes())
            .unwrap();
        bytes[at] = 0xff;
        let read = decode_stream(api, &bytes, 9);
        assert!(read.contains("-- utf8 parse error"), "{api}: {read}");
        assert!(!read.contains('\u{fffd}'), "{api}: {read}");
    }
}

/// A stream cut before its end gives an error or, once the message has ended, the whole message.
#[test]
fn decoder_never_takes_a_cut_stream_for_a_shorter_reply() {
    for api in Api::ALL {
        let path = fixtures("replies").join(api.name()).join("text.sse");
        let bytes = std::fs::read(path).unwrap();
        let parts = |account: &str| {
            account
                .lines()
                .skip_while(|line| !line.starts_with("-- "))
                .skip(1)
                .count()
        };
        for cut in 0..bytes.len() {
            let read = decode_stream(api, &bytes[..cut], bytes.len());
            let text = "{\"type\":\"text\",\"text\":\"Grüße, 世界";
            assert!(
                read.contains("-- dropped") || read.contains(text),
                "{api} cut at {cut}: {read}"
            );
            assert!(parts(&read) <= 1);
        }
    }
}

#[test]
fn decoder_reads_whole_replies_as_in_the_snapshots() {
    for api in Api::ALL {
        for path in reply_files(api, "json") {
            let body = std::fs::read_to_string(&path).unwrap();
            let mut decoder = new_decoder(api);
            let mut deltas = Vec::new();
            let end = decoder
                .read_body(&body, &mut |delta| deltas.push(delta))
                .map_err(|fault| format!("{fault:?}"));
            assert_matches_snapshot(&path, &format_outcome(&deltas, end.map(|()| decoder)));
        }
    }
}

#[test]
fn call_ids_are_recognized_and_unique() {
    let asked = request(
        vec![segment(
            message(Role::User, vec![Part::from_text("?")], None),
            false,
        )],
        vec![],
    );
    let mut ids = CallIds::for_reply_to(&asked);
    let one = ids.next_id("read_file");
    let two = ids.next_id("read_file");
    assert_ne!(one, two);
    assert!(
        CallIds::is_generated(&one) && CallIds::is_generated(&two),
        "{one} {two}"
    );
    for foreign in [
        "call_abc",
        "call_1",
        "toolu_1",
        "call_1_0123456",
        "call_1_01234567_x",
        "call__01234567",
        "",
    ] {
        assert!(!CallIds::is_generated(foreign), "{foreign}");
    }
}
