//! Recorded conversations of other programs, through the store and back.

use std::io::Read;

use haft_store::{Foreign, Format, Imported, Scope, Store, read_conversations};

use crate::support::{Place, tick};

/// The text of the recorded trajectories; none, with a line that says so, where they are absent.
fn trajectories() -> Option<String> {
    let Some(path) = std::env::var_os("HAFT_TRAJECTORIES") else {
        println!("skipped: HAFT_TRAJECTORIES does not name the recorded conversations");
        return None;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    Some(text)
}

#[tokio::test]
async fn importing_an_export_is_the_identity_over_all_recorded_conversations() {
    let Some(text) = trajectories() else { return };
    let read = || read_conversations(Foreign { text: &text, now: tick(0) }, None).unwrap();
    let conversations = read();
    assert!(conversations.len() > 200, "{}", conversations.len());
    assert_eq!(read(), conversations, "the same text gives the same");
    let (first, second) = (Place::new(), Place::new());
    let (one, other) = (first.open(), second.open());
    for conversation in &conversations {
        let document = &conversation.document;
        let imported = one.import(document.clone(), "p").await.unwrap();
        assert!(matches!(imported, Imported::New(_)), "{}", document.id);
        let exported = serde_json::to_string_pretty(&one.export(&document.id).await.unwrap().unwrap()).unwrap();
        let again = read_conversations(Foreign { text: &exported, now: tick(9) }, None).unwrap().remove(0);
        assert_eq!(again.document, *document, "what was exported reads as what was imported");
        other.import(again.document, "p").await.unwrap();
        let twice = serde_json::to_string_pretty(&other.export(&document.id).await.unwrap().unwrap()).unwrap();
        assert_eq!(twice, exported, "byte for byte");
        let same = one.import(document.clone(), "p").await.unwrap();
        assert!(matches!(same, Imported::Same(_)), "{}", document.id);
    }
    assert_eq!(one.list(Scope::Everywhere).await.unwrap().len(), conversations.len());
}

#[test]
fn every_recorded_message_is_read() {
    let Some(text) = trajectories() else { return };
    let read = read_conversations(Foreign { text: &text, now: tick(0) }, Some(Format::Trajectory)).unwrap();
    for (line, conversation) in text.lines().zip(&read) {
        let recorded: serde_json::Value = serde_json::from_str(line).unwrap();
        let messages = recorded["messages"].as_array().unwrap();
        let empty = |message: &&serde_json::Value| {
            message["content"].as_str().is_none_or(str::is_empty)
                && message["role"] != "tool"
                && message["tool_calls"].as_array().is_none_or(Vec::is_empty)
                && message["reasoning_content"].as_str().is_none_or(str::is_empty)
        };
        let left_out = messages.iter().filter(empty).count();
        let document = &conversation.document;
        assert_eq!(document.messages.len(), messages.len() - left_out, "{}", document.id);
        let calls = |message: &serde_json::Value| message["tool_calls"].as_array().map_or(0, Vec::len);
        assert_eq!(
            document.messages.iter().map(|message| message.tool_calls().count()).sum::<usize>(),
            messages.iter().map(calls).sum::<usize>()
        );
        assert_eq!(document.metadata["source"], recorded["source"]);
    }
}
