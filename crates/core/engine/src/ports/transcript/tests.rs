use haft_store::{NewConversation, SqliteStore, StoreConfig};
use haft_testkit::test::FakeClock;
use haft_types::{Envelope, Role, Timestamp, ToolCall, ToolResult, ToolStatus};

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
        message(0xa1, Role::User, Part::text("first input")),
        message(0xa2, Role::Assistant, Part::ToolCall(call)),
        message(0xa3, Role::Tool, Part::ToolResult(Box::new(result))),
        message(0xa4, Role::Summary, Part::text("a summary")),
        message(0xa5, Role::User, Part::text("second input")),
    ]
}

async fn transcript(folder: &std::path::Path) -> StoredTranscript {
    let clock = Arc::new(FakeClock::default());
    let store: Arc<dyn Store> = Arc::new(
        SqliteStore::open(
            &folder.join("conversations.db"),
            &StoreConfig::default(),
            clock,
        )
        .unwrap(),
    );
    let conversation_id = ConversationId::new("a");
    if store.get(&conversation_id).await.unwrap().is_none() {
        let mut new = NewConversation::new(conversation_id.clone(), "p");
        new.messages = conversation();
        store.create(new).await.unwrap();
    }
    let marks = Arc::new(
        StoredMarks::open(Arc::clone(&store), conversation_id.clone())
            .await
            .unwrap(),
    );
    StoredTranscript {
        store,
        conversation: conversation_id,
        counter: Arc::new(Uncounted),
        marks,
        children: None,
    }
}

#[tokio::test]
async fn marks_are_reported_and_survive() {
    let folder = tempfile::tempdir().unwrap();
    {
        let transcript = transcript(folder.path()).await;
        let ids = format!(
            " 000000a2,{} , 000000a4, 000000a5, deadbeef, nonsense",
            id(0xa3)
        );
        let report = transcript.mark(MarkAction::Append, &ids).await.unwrap();
        assert_eq!((report.changed, report.unchanged, report.marked), (2, 0, 2));
        assert_eq!(
            report.refused,
            ["000000a4", "000000a5"],
            "summaries and the current input stay"
        );
        assert_eq!(report.unknown, ["deadbeef", "nonsense"]);
        let again = transcript
            .mark(MarkAction::Append, "000000A2")
            .await
            .unwrap();
        assert_eq!((again.changed, again.unchanged, again.marked), (0, 1, 2));
    }
    let transcript = transcript(folder.path()).await;
    assert_eq!(transcript.marks.current().deleted.len(), 2);
    let marked: Vec<_> = transcript
        .list()
        .await
        .unwrap()
        .iter()
        .map(|line| line.marked)
        .collect();
    assert_eq!(marked, [false, true, true, false, false]);
    let off = transcript
        .mark(MarkAction::Delete, "000000a2")
        .await
        .unwrap();
    assert_eq!((off.changed, off.marked), (1, 1));
    let new = transcript
        .mark(MarkAction::Create, "000000a1")
        .await
        .unwrap();
    assert_eq!((new.changed, new.marked), (1, 1));
    assert!(transcript.marks.current().deleted.contains(&id(0xa1)));
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
