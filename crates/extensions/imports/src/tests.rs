use std::path::Path;

use super::*;

/// The time of what has none.
fn now() -> Timestamp {
    Timestamp::from_second(1_794_736_800).unwrap()
}

fn read(text: &str) -> Result<Vec<ImportedConversation>, ImportError> {
    read_conversations(SourceText { text, now: now() }, None)
}

/// Each folder of `fixtures` holds an input and the documents it must give, as haft exports them. `HAFT_BLESS=1` is not
/// read here: a changed expectation is written by hand.
#[test]
fn fixtures_give_their_documents() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"));
    let mut seen = 0;
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        let file = |wanted: &str| {
            let mut files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            let file = files.find(|path| path.file_stem().is_some_and(|stem| stem == wanted));
            std::fs::read_to_string(file.unwrap_or_else(|| panic!("no {wanted} in {}", folder.display()))).unwrap()
        };
        let read = read(&file("input")).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let got: Vec<Value> =
            read.iter().map(|one| serde_json::json!({ "skipped": one.skipped, "document": one.document })).collect();
        let expected: Vec<Value> = serde_json::from_str(&file("expected")).unwrap();
        let shown = serde_json::to_string_pretty(&got).unwrap();
        assert_eq!(got, expected, "{}: got {shown}", folder.display());
        seen += 1;
    }
    assert!(seen >= 8, "only {seen} fixtures");
}

#[test]
fn a_text_that_grew_gives_the_same_messages_and_more() {
    let lines = include_str!("../fixtures/codex/input.jsonl").lines();
    let lines: Vec<_> = lines.collect();
    let all = read(&lines.join("\n")).unwrap().remove(0).document;
    let mut before = 0;
    for count in 4..lines.len() {
        let part = read(&lines[..count].join("\n")).unwrap().remove(0).document;
        assert_eq!(part.id, all.id);
        // The newest reply may still be growing.
        let settled = part.messages.len() - 1;
        assert_eq!(part.messages[..settled], all.messages[..settled], "{count} lines");
        assert!(part.messages.len() >= before);
        before = part.messages.len();
    }
}

#[test]
fn the_same_words_twice_are_two_messages() {
    let text =
        r#"[{"role":"user","content":"go on"},{"role":"assistant","content":"ok"},{"role":"user","content":"go on"}]"#;
    let document = read(text).unwrap().remove(0).document;
    let ids: std::collections::HashSet<_> =
        document.messages.iter().map(|message| message.message_id.short()).collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(read(text).unwrap().remove(0).document, document, "and the same when read again");
    let other = read(&text.replace("ok", "no")).unwrap().remove(0).document;
    assert_ne!(other.id, document.id);
    assert_eq!(other.messages[0].message_id, document.messages[0].message_id);
}

#[test]
fn what_is_no_conversation_says_why() {
    let why = |text: &str| read(text).unwrap_err().to_string();
    assert!(why("").contains("not JSON"), "{}", why(""));
    assert!(why("just words").contains("not JSON"));
    assert!(why("{}").contains("claude-code"));
    assert!(why("[]").contains("no messages"));
    assert!(why(r#"[{"role":"robot","content":"x"}]"#).contains("message 1: unknown role `robot`"));
    assert!(why(r#"[{"role":"user","content":[{"type":"smell"}]}]"#).contains("`smell`"));
    let time = r#"{"conversation_id":"a","created_at":"soon","messages":[{"role":"user","content":"x"}]}"#;
    assert!(why(time).contains(r#"`created_at` is `"soon"`, which is not a time"#), "{}", why(time));
    let line = "{\"id\":\"a\",\"source\":\"s\",\"licence\":\"MIT\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n{\"id\":1}";
    assert!(why(line).contains("line 2"), "{}", why(line));
    assert!("word".parse::<ImportFormat>().unwrap_err().contains("openai-chat"));
    for format in ImportFormat::ALL {
        assert_eq!(format.name().parse::<ImportFormat>().unwrap(), format);
    }
}
