use haft_store::{NewConversation, SqliteStore, StoreConfig};
use haft_testkit::support::FakeClock;
use haft_types::{Envelope, MarkAction, MessageId, Part, Role, Timestamp, ToolCall, ToolResult};

use super::*;
use crate::stored_state::StoredState;

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

async fn transcript(folder: &std::path::Path) -> (StoredTranscript, Arc<StoredMarks>) {
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
    let children =
        Children::new(StoredState::default().take_kept_document(&store, &conversation_id));
    let transcript = stored_transcript(
        store,
        conversation_id,
        Arc::new(ZeroCounter),
        Arc::clone(&marks),
        Arc::new(children),
    );
    (transcript, marks)
}

#[tokio::test]
async fn mark_reports_and_stores_marks() {
    let folder = tempfile::tempdir().unwrap();
    {
        let (transcript, _) = transcript(folder.path()).await;
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
    let (transcript, marks) = transcript(folder.path()).await;
    assert_eq!(marks.current().deleted.len(), 2);
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
    assert!(marks.current().deleted.contains(&id(0xa1)));
}
