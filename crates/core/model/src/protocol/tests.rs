//! Tests the parsers against fixtures and properties. To add a case, add a text and its events
//! under `fixtures/protocol/`.

mod linear;
mod lowering;
mod properties;
mod replies;

use std::path::{Path, PathBuf};

use haft_types::{PromptLanguage, ToolProtocol, ToolSpec};
use serde_json::{Value, json};

use super::{TextEvent, TextParser, describe_call_format};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/protocol")
}

fn tools() -> Vec<ToolSpec> {
    serde_json::from_str(&std::fs::read_to_string(fixtures().join("tools.json")).unwrap()).unwrap()
}

/// Returns the events of a text that arrives in `pieces`, with adjacent texts joined.
fn events<'a>(protocol: ToolProtocol, pieces: impl IntoIterator<Item = &'a str>) -> Vec<TextEvent> {
    let mut parser = TextParser::new(protocol, &tools());
    let mut found = Vec::new();
    for piece in pieces {
        parser.feed(piece, &mut |event| found.push(event));
    }
    parser.finish(&mut |event| found.push(event));
    join_adjacent_texts(found)
}

fn join_adjacent_texts(found: Vec<TextEvent>) -> Vec<TextEvent> {
    let mut out: Vec<TextEvent> = Vec::new();
    for event in found {
        match (out.last_mut(), event) {
            (Some(TextEvent::Text(text)), TextEvent::Text(more))
            | (Some(TextEvent::Thinking(text)), TextEvent::Thinking(more)) => text.push_str(&more),
            (_, event) => out.push(event),
        }
    }
    out
}

/// Splits the text into pieces of `characters` characters.
fn pieces(text: &str, characters: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .nth(characters)
            .map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn as_json(event: &TextEvent) -> Value {
    match event {
        TextEvent::Text(text) => json!({ "text": text }),
        TextEvent::Thinking(text) => json!({ "thinking": text }),
        TextEvent::CallOpened { name } => json!({ "call": name }),
        // Arguments that are valid JSON are shown as JSON.
        TextEvent::CallClosed { arguments } => json!({
            "arguments": serde_json::from_str::<Value>(arguments).unwrap_or_else(|_| arguments.as_str().into())
        }),
        TextEvent::CallLeftOpen { source } => json!({ "left_open": source }),
    }
}

#[test]
fn parser_gives_the_fixtures_events_for_every_split() {
    for (protocol, folder) in [(ToolProtocol::Xml, "xml"), (ToolProtocol::React, "react")] {
        let mut cases = 0;
        for file in std::fs::read_dir(fixtures().join(folder)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "txt") {
                continue;
            }
            cases += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let expected: Vec<Value> = serde_json::from_str(
                &std::fs::read_to_string(path.with_extension("json")).unwrap(),
            )
            .unwrap();
            for size in [1, 2, 3, 5, 7, 64, usize::MAX] {
                let found: Vec<_> = events(protocol, pieces(&text, size))
                    .iter()
                    .map(as_json)
                    .collect();
                assert_eq!(found, expected, "{} in pieces of {size}", path.display());
            }
        }
        assert!(cases > 10, "{folder}: {cases} cases");
    }
}

#[test]
fn parser_emits_text_with_the_piece_it_arrived_in() {
    for protocol in [ToolProtocol::Xml, ToolProtocol::React] {
        let mut parser = TextParser::new(protocol, &tools());
        for piece in ["H", "ello", " wor", "ld\n", "th", "ere", " is <", "b>"] {
            let mut found = Vec::new();
            parser.feed(piece, &mut |event| found.push(event));
            let held = protocol == ToolProtocol::Xml && piece == " is <";
            let expected = match piece {
                " is <" if held => " is ",
                "b>" if protocol == ToolProtocol::Xml => "<b>",
                piece => piece,
            };
            assert_eq!(
                found,
                [TextEvent::Text(expected.to_owned())],
                "{protocol:?} {piece:?}"
            );
        }
    }
}

#[test]
fn call_format_matches_the_snapshots() {
    let tools = tools();
    let english = PromptLanguage::English;
    let chinese = PromptLanguage::Chinese;
    for (protocol, language, name) in [
        (ToolProtocol::Xml, english, "xml"),
        (ToolProtocol::React, english, "react"),
        (ToolProtocol::Xml, chinese, "xml.zh-CN"),
        (ToolProtocol::React, chinese, "react.zh-CN"),
    ] {
        insta::assert_snapshot!(
            name,
            describe_call_format(protocol, language, &tools).unwrap()
        );
        let reading = describe_call_format(protocol, language, &tools[..1]).unwrap();
        assert!(
            !reading.contains("write_to_file") && !reading.contains("attempt_completion"),
            "{reading}"
        );
        assert_eq!(describe_call_format(protocol, language, &[]), None);
    }
    assert_eq!(
        describe_call_format(ToolProtocol::Native, PromptLanguage::English, &tools),
        None
    );
}
