use std::path::Path;

use super::*;

/// The time of messages without one.
fn now() -> Timestamp {
    Timestamp::from_second(1_794_736_800).unwrap()
}

fn read(text: &str) -> Result<Vec<ImportedConversation>, ImportError> {
    read_conversations(SourceText { text, now: now() }, None)
}

/// Each folder of `fixtures` contains an input and the documents it must give, in haft's export
/// format. `HAFT_BLESS=1` has no effect here: expectations are written by hand.
#[test]
fn read_conversations_matches_the_fixtures() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"));
    let mut seen = 0;
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        let path = |wanted: &str| {
            let mut files = std::fs::read_dir(&folder)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            let file = files.find(|path| path.file_stem().is_some_and(|stem| stem == wanted));
            file.unwrap_or_else(|| panic!("no {wanted} in {}", folder.display()))
        };
        let file = |wanted: &str| std::fs::read_to_string(path(wanted)).unwrap();
        let input = path("input");
        let input = if input.join("base_state.json").is_file() {
            read_stored_text(&input.join("base_state.json"), None)
                .unwrap()
                .unwrap()
        } else if input.is_dir() {
            let session = std::fs::read_dir(input.join("session/global"))
                .unwrap()
                .next()
                .unwrap()
                .unwrap()
                .path();
            read_stored_text(&session, None).unwrap().unwrap()
        } else if input.extension().is_some_and(|end| end == "sql") {
            let home = tempfile::tempdir().unwrap();
            read_stored_text(&database(&home, &file("input")), None)
                .unwrap()
                .unwrap()
        } else {
            file("input")
        };
        let read = read(&input).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let got: Vec<Value> = read
            .iter()
            .map(|one| serde_json::json!({ "skipped": one.skipped, "document": one.document }))
            .collect();
        let expected: Vec<Value> = serde_json::from_str(&file("expected")).unwrap();
        let shown = serde_json::to_string_pretty(&got).unwrap();
        assert_eq!(got, expected, "{}: got {shown}", folder.display());
        seen += 1;
    }
    assert!(seen >= 29, "only {seen} fixtures");
}

/// Creates a database from these statements.
fn database(folder: &tempfile::TempDir, statements: &str) -> std::path::PathBuf {
    let path = folder.path().join("sessions.db");
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch(statements)
        .unwrap();
    path
}

#[test]
fn database_is_read_without_a_write_while_its_program_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder, include_str!("../fixtures/goose-1.34/input.sql"));
    let before = std::fs::read(&path).unwrap();
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let listed = list_stored_sessions(&path).unwrap();
    let [one] = listed.as_slice() else {
        panic!("{listed:?}")
    };
    assert_eq!(
        (one.id.as_str(), one.name.as_str()),
        ("20261117_1", "Done.")
    );
    assert_eq!(one.changed, "2026-11-17T03:00:41Z".parse().ok());
    assert!(
        read_stored_text(&path, Some("20261117_1"))
            .unwrap()
            .is_some_and(|text| text.contains("off-by-one"))
    );
    assert_eq!(
        read_stored_text(&path, Some("none")).unwrap().as_deref(),
        Some("")
    );
    assert_eq!(
        (names(), std::fs::read(&path).unwrap()),
        (vec!["sessions.db".into()], before.clone())
    );
    // The program's latest writes are still in the log beside the database.
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer
        .execute_batch("PRAGMA journal_mode = wal; UPDATE sessions SET name = 'Later.'")
        .unwrap();
    let held = std::fs::read(&path).unwrap();
    assert_eq!(list_stored_sessions(&path).unwrap()[0].name, "Later.");
    assert_eq!(std::fs::read(&path).unwrap(), held);
    drop(writer);
    let other = tempfile::tempdir().unwrap();
    let other = database(&other, "CREATE TABLE bees (id)");
    assert!(
        read_stored_text(&other, None)
            .unwrap_err()
            .to_string()
            .contains("goose")
    );
    assert_eq!(
        read_stored_text(&folder.path().join("absent.json"), None).unwrap(),
        None
    );
}

#[test]
fn read_conversations_of_a_longer_text_keeps_earlier_messages() {
    let lines = include_str!("../fixtures/codex/input.jsonl").lines();
    let lines: Vec<_> = lines.collect();
    let all = read(&lines.join("\n")).unwrap().remove(0).document;
    let mut before = 0;
    for count in 4..lines.len() {
        let part = read(&lines[..count].join("\n")).unwrap().remove(0).document;
        assert_eq!(part.id, all.id);
        // The newest reply may still grow.
        let settled = part.messages.len() - 1;
        assert_eq!(
            part.messages[..settled],
            all.messages[..settled],
            "{count} lines"
        );
        assert!(part.messages.len() >= before);
        before = part.messages.len();
    }
}

/// Returns the token counts of a rollout of one call and its answer, with an event after each of
/// them.
fn rollout_counts(first: &str, second: &str) -> Vec<Option<(u64, u64)>> {
    let item = |item: &str| {
        format!(r#"{{"timestamp":"2025-09-12T10:00:00Z","type":"response_item","payload":{item}}}"#)
    };
    let event = |event: &str| {
        format!(r#"{{"timestamp":"2025-09-12T10:00:01Z","type":"event_msg","payload":{event}}}"#)
    };
    let text = [
        r#"{"timestamp":"2025-09-12T10:00:00Z","type":"session_meta","payload":{"id":"s"}}"#
            .to_owned(),
        item(r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}"#),
        item(
            r#"{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c"}"#,
        ),
        item(r#"{"type":"function_call_output","call_id":"c","output":"a.rs"}"#),
        event(first),
        item(
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#,
        ),
        event(second),
    ];
    let document = read(&text.join("\n")).unwrap().remove(0).document;
    let replies = document
        .messages
        .iter()
        .filter(|message| message.role == haft_types::Role::Assistant);
    let counts = |made: &haft_types::LlmMetadata| (made.input_tokens, made.cached_input_tokens);
    replies
        .map(|reply| reply.llm_metadata.as_deref().map(counts))
        .collect()
}

#[test]
fn rollouts_of_september_2025_keep_their_counts() {
    // Flat counts, as the first versions with events wrote them, after the results of the reply.
    let flat = |input: u32, cached: u32| {
        format!(
            r#"{{"type":"token_count","input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":5}}"#
        )
    };
    assert_eq!(
        rollout_counts(&flat(100, 0), &flat(150, 90)),
        [Some((100, 0)), Some((60, 90))]
    );
    // Totals only.
    let sum = |input: u32, cached: u32| {
        let total = format!(
            r#"{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":5}}"#
        );
        format!(r#"{{"type":"token_count","info":{{"total_token_usage":{total}}}}}"#)
    };
    assert_eq!(
        rollout_counts(&sum(100, 0), &sum(250, 90)),
        [Some((100, 0)), Some((60, 90))]
    );
    assert_eq!(
        rollout_counts(r#"{"type":"token_count","info":null}"#, &sum(250, 90)),
        [None, Some((160, 90))]
    );
}

#[test]
fn read_conversations_keeps_repeated_messages() {
    let text = r#"[{"role":"user","content":"go on"},{"role":"assistant","content":"ok"},{"role":"user","content":"go on"}]"#;
    let document = read(text).unwrap().remove(0).document;
    let ids: std::collections::HashSet<_> = document
        .messages
        .iter()
        .map(|message| message.message_id.short_id())
        .collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(
        read(text).unwrap().remove(0).document,
        document,
        "and the same when read again"
    );
    let other = read(&text.replace("ok", "no")).unwrap().remove(0).document;
    assert_ne!(other.id, document.id);
    assert_eq!(
        other.messages[0].message_id,
        document.messages[0].message_id
    );
}

#[test]
fn read_conversations_reports_why_a_text_is_invalid() {
    let why = |text: &str| read(text).unwrap_err().to_string();
    assert!(why("").contains("not JSON"), "{}", why(""));
    assert!(why("just words").contains("not JSON"));
    assert!(why("{}").contains("claude-code"));
    assert!(why("[]").contains("no messages"));
    assert!(why(r#"[{"role":"robot","content":"x"}]"#).contains("message 1: unknown role `robot`"));
    assert!(why(r#"[{"role":"user","content":[{"type":"smell"}]}]"#).contains("`smell`"));
    let time =
        r#"{"conversation_id":"a","created_at":"soon","messages":[{"role":"user","content":"x"}]}"#;
    assert!(
        why(time).contains(r#"`created_at` is `"soon"`, which is not a time"#),
        "{}",
        why(time)
    );
    let line = "{\"id\":\"a\",\"source\":\"s\",\"licence\":\"MIT\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n{\"id\":1}";
    assert!(why(line).contains("line 2"), "{}", why(line));
    assert!(
        "word"
            .parse::<ImportFormat>()
            .unwrap_err()
            .contains("openai-chat")
    );
    for &format in ImportFormat::ALL {
        assert_eq!(format.name().parse::<ImportFormat>().unwrap(), format);
    }
}

#[test]
fn swe_agent_task_is_a_user_message_and_observations_are_not() {
    let said = |role: &str, kind: &str, text: &str| {
        format!(r#"{{"role":"{role}","content":"{text}","agent":"main"{kind}}}"#)
    };
    let typed = |kind: &str| format!(r#","message_type":"{kind}""#);
    let users = |messages: &[String]| -> Vec<(String, bool)> {
        let text = format!(r#"{{"trajectory":[],"history":[{}]}}"#, messages.join(","));
        let document = read(&text).unwrap().remove(0).document;
        let users = document
            .messages
            .into_iter()
            .filter(|message| message.role == haft_types::Role::User);
        users
            .map(|message| (message.joined_text(), message.opens_round()))
            .collect()
    };
    // As version 1 writes it: the task has the type of an observation.
    let newer = [
        said("system", &typed("system_prompt"), "s"),
        said(
            "user",
            r#","is_demo":true,"message_type":"demonstration""#,
            "demo",
        ),
        said("user", &typed("observation"), "task"),
        said("assistant", &typed("action"), "ls"),
        said("user", &typed("observation"), "a.rs"),
    ];
    let expected = [
        ("demo".to_owned(), false),
        ("task".to_owned(), true),
        ("a.rs".to_owned(), false),
    ];
    assert_eq!(users(&newer), expected);
    // As earlier versions wrote it: no type at all.
    let older = [
        said("system", "", "s"),
        said("user", r#","is_demo":true"#, "demo"),
        said("user", "", "task"),
        said("assistant", "", "ls"),
        said("user", "", "a.rs"),
    ];
    assert_eq!(users(&older), expected);
}

/// A killed program leaves an incomplete event; files with other names are no events.
#[test]
fn openhands_truncated_event_is_counted_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events");
    std::fs::create_dir(&events).unwrap();
    std::fs::write(folder.path().join("base_state.json"), r#"{"id": "one"}"#).unwrap();
    let said = r#"{"kind": "MessageEvent", "source": "user", "llm_message": {"role": "user", "content": "hi"}}"#;
    for (name, text) in [
        ("event-0.json", said),
        ("event-1.json", &said[..40]),
        (".lock", ""),
    ] {
        std::fs::write(events.join(name), text).unwrap();
    }
    let text = read_stored_text(&folder.path().join("base_state.json"), None)
        .unwrap()
        .unwrap();
    let [conversation] = <[_; 1]>::try_from(read(&text).unwrap()).unwrap();
    assert_eq!(
        (conversation.document.messages.len(), conversation.skipped),
        (1, 1)
    );
}
