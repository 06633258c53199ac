use haft_store::{NewConversation, SqliteStore, StoreConfig};
use haft_testkit::support::FakeClock;
use haft_types::{Envelope, Timestamp, ToolCall, ToolResult};

use super::*;

fn id(number: u32) -> MessageId {
    format!("{number:08x}-0000-4000-8000-000000000000")
        .parse()
        .unwrap()
}

fn conversation() -> Vec<Message> {
    let message =
        |number, role, part| Message::new(id(number), role, vec![part], Timestamp::UNIX_EPOCH);
    let call = ToolCall {
        id: "c".into(),
        name: "read_file".into(),
        arguments: r#"{"path":"a"}"#.into(),
        signature: None,
    };
    let result = ToolResult {
        tool_call_id: "c".into(),
        name: "read_file".into(),
        envelope: Envelope::success("1\tone\n".repeat(9_000)),
    };
    vec![
        message(0xa1, Role::User, Part::from_text("first input")),
        message(0xa2, Role::Assistant, Part::ToolCall(call)),
        message(0xa3, Role::Tool, Part::ToolResult(Box::new(result))),
        message(0xa4, Role::Summary, Part::from_text("a summary")),
        message(0xa5, Role::User, Part::from_text("second input")),
    ]
}

async fn transcript(folder: &std::path::Path) -> StoredTranscript {
    let path = folder.join("conversations.db");
    let clock = Arc::new(FakeClock::default());
    let store = SqliteStore::open(&path, &StoreConfig::default(), clock).unwrap();
    let conversation_id = ConversationId::new("a");
    let mut new = NewConversation::new(conversation_id.clone(), "p");
    new.messages = conversation();
    store.create(new).await.unwrap();
    let mut child = NewConversation::new(ConversationId::new("child"), "p#agents");
    child.messages = vec![Message::new(
        id(0xc1),
        Role::Assistant,
        vec![Part::from_text("found it")],
        Timestamp::UNIX_EPOCH,
    )];
    store.create(child).await.unwrap();
    StoredTranscript {
        store: Arc::new(store),
        conversation: conversation_id,
        children: Box::new(|| vec![ConversationId::new("child")]),
        describe: Box::new(|_| Vec::new()),
        edit_marks: Box::new(|_, _, _| Box::pin(async { Ok(MarkReport::default()) })),
    }
}

#[tokio::test]
async fn a_message_comes_back_whole_by_either_id() {
    let folder = tempfile::tempdir().unwrap();
    let transcript = transcript(folder.path()).await;
    for name in ["000000a3", " 000000A3 ", &id(0xa3).to_string()] {
        let recalled = transcript.recall(name).await.unwrap();
        assert_eq!(recalled.text, "1\tone\n".repeat(9_000));
        assert_eq!(
            (recalled.role, recalled.status),
            (Role::Tool, Some(ToolStatus::Success))
        );
        assert_eq!(recalled.tools, ["read_file"]);
    }
    assert_eq!(
        transcript.recall("000000a2").await.unwrap().text,
        r#"calls read_file {"path":"a"}"#
    );
    assert_eq!(
        transcript.recall("000000c1").await.unwrap().text,
        "found it",
        "evidence of a sub-agent"
    );
    for name in ["", "a3", "deadbeef", &id(0xa9).to_string()] {
        assert_eq!(
            transcript.recall(name).await,
            Err(PortError::Unknown {
                what: "message",
                id: name.into()
            })
        );
    }
}
