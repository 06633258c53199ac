//! Tests of every stored key and document, byte for byte: what earlier versions stored must be
//! readable.

use std::sync::Arc;

use haft_context::{ContextEdit, ReminderCopy};
use haft_store::{NewConversation, SqliteStore, StoreConfig};
use haft_testkit::support::FakeClock;
use haft_types::{MessageId, Role, TaskPhase, Timestamp};

use super::*;

/// Asserts that the document is stored under `key` as `json`, and can be read from it.
fn assert_stored_form<T: StateDocument + PartialEq + std::fmt::Debug>(
    document: &T,
    key: &str,
    json: &str,
) {
    assert_eq!(T::KEY, key);
    assert_eq!(
        serde_json::to_value(document).unwrap().to_string(),
        json,
        "{key}"
    );
    assert_eq!(&serde_json::from_str::<T>(json).unwrap(), document, "{key}");
}

fn id(n: u8) -> MessageId {
    MessageId::from_hash(ContentHash::from_content(&[n]))
}

#[test]
fn request_documents_keep_their_stored_form() {
    let a = id(1).min(id(2));
    let b = id(1).max(id(2));
    let cleared = Cleared {
        target: 7,
        ids: [a, b].into(),
        first_kept: Some(b),
        ..Cleared::default()
    };
    assert_stored_form(
        &cleared,
        "cleared",
        &format!(r#"{{"target":7,"ids":["{a}","{b}"],"first_kept":"{b}"}}"#),
    );
    let hash = ContentHash::from_content(b"policy");
    assert_stored_form(&SentPolicy(hash), "policy", &format!(r#""{hash}""#));
    assert_stored_form(&SentEdits(Some(hash)), "edited", &format!(r#""{hash}""#));
    assert_stored_form(&SentEdits(None), "edited", "null");
    assert_stored_form(
        &SentDescriptions(Some("src: code".into())),
        "active_context",
        r#""src: code""#,
    );
    assert_stored_form(&SentDescriptions(None), "active_context", "null");
    assert_stored_form(
        &TokenizerFactors([("p/m".to_owned(), 1.25)].into()),
        "tokenizer_factors",
        r#"{"p/m":1.25}"#,
    );
    assert_stored_form(&PlanModeNotice(true), "plan_told", "true");
    assert_stored_form(
        &SentPlace(StatedPlace::AfterDocuments),
        "place",
        r#""after_documents""#,
    );
    assert_stored_form(&SentPlace(StatedPlace::System), "place", r#""system""#);
    let shown = ImageDescriptions([("ab12".to_owned(), "A button.".to_owned())].into());
    assert_stored_form(&shown, "image_descriptions", r#"{"ab12":"A button."}"#);
    let described = ToolDescription {
        declared_by: "d".into(),
        description: "Looks.".into(),
    };
    assert_stored_form(
        &ToolDescriptions([("look".to_owned(), described)].into()),
        "steady_tools",
        r#"{"look":{"declared_by":"d","description":"Looks."}}"#,
    );
}

#[test]
fn reminder_copies_keep_their_stored_form() {
    let carried = Carried {
        copies: Vec::new(),
        compressed_rounds: 3,
    };
    assert_stored_form(
        &carried,
        "carried",
        r#"{"copies":[],"compressed_rounds":3}"#,
    );
    let hash = ContentHash::from_content(b"list");
    let after = id(1);
    let copy = ReminderCopy {
        owner: "reminder:todo".into(),
        text: "# TODO".into(),
        says: hash,
        after,
    };
    let json = format!(
        r##"{{"copies":[{{"owner":"reminder:todo","text":"# TODO","says":"{hash}","after":"{after}"}}],"compressed_rounds":3}}"##
    );
    assert_stored_form(
        &Carried {
            copies: vec![copy],
            compressed_rounds: 3,
        },
        "carried",
        &json,
    );
}

#[test]
fn cache_documents_keep_their_stored_form() {
    assert_stored_form(&BoughtLifetime("1h".into()), "bought_lifetime", r#""1h""#);
    let mut evidence = LifetimeEvidence::default();
    let minutes = std::time::Duration::from_mins;
    evidence.observe(minutes(5), minutes(1), 100, 100);
    evidence.observe(minutes(5), minutes(2), 100, 0);
    assert_stored_form(
        &CacheLifetimes([("p/m 5m".to_owned(), evidence)].into()),
        "cache_lifetimes",
        r#"{"p/m 5m":{"longest_hit":60.0,"shortest_loss":120.0,"early_losses":1,"late_hits":0,"reported":false}}"#,
    );
    let mut log = KeepAliveLog::default();
    log.push(KeepAliveRecord {
        sent_at: Timestamp::UNIX_EPOCH,
        pending: PendingWork::Call,
        usage: Usage::default(),
        cost: None,
    });
    assert_stored_form(
        &log,
        "keep_alives",
        r#"[{"sent_at":"1970-01-01T00:00:00Z","pending":"call","usage":{"input":0,"cached_input":0,"cache_write":0,"output":0,"reasoning":0},"cost":null}]"#,
    );
}

#[test]
fn summary_documents_keep_their_stored_form() {
    assert_stored_form(&FailedSummaries(2), "failed_summaries", "2");
    assert_stored_form(&SummaryStandIn(None), "stand_in", "null");
    let message = Message::from_text(id(1), Role::Summary, "Kept.", Timestamp::UNIX_EPOCH);
    let json = r#"{"message_id":"fa1fd278-6e88-40a7-aa94-276683579b3e","role":"summary","content":"Kept.","created_at":"1970-01-01T00:00:00Z","metadata":{},"llm_metadata":null}"#;
    assert_stored_form(&SummaryStandIn(Some(message)), "stand_in", json);
}

#[test]
fn notes_and_edits_keep_their_stored_form() {
    let a = id(1);
    let mut edits = Edits::default();
    edits.push(ContextEdit::Drop { ids: [a].into() });
    edits.push(ContextEdit::Summarise {
        ids: vec![a],
        text: "short".into(),
    });
    edits.push(ContextEdit::Undo { edits: 1 });
    let json = format!(
        r#"[{{"edit":"drop","ids":["{a}"]}},{{"edit":"summarise","ids":["{a}"],"text":"short"}},{{"edit":"undo","edits":1}}]"#
    );
    assert_stored_form(&edits, "edits", &json);
    let marks = Marks {
        deleted: [a].into(),
    };
    assert_stored_form(&marks, "marks", &format!(r#"{{"deleted":["{a}"]}}"#));
}

#[test]
fn child_conversations_and_task_reports_keep_their_stored_form() {
    let child = ChildConversation {
        conversation: ConversationId::new("c"),
        agent: "helper".into(),
        call_id: "call_1".into(),
    };
    let json = r#"[{"conversation":"c","agent":"helper","call_id":"call_1"}]"#;
    assert_stored_form(&ChildConversations(vec![child]), "subagents", json);
    let report = TaskReport {
        id: "t1".into(),
        command: "make".into(),
        phase: TaskPhase::Lost,
        exit_code: None,
        output: Some("/o".into()),
        words: "was lost".into(),
        last_lines: String::new(),
    };
    let json = r#"[{"id":"t1","command":"make","phase":"lost","exit_code":null,"output":"/o","words":"was lost","last_lines":""}]"#;
    assert_stored_form(&EndedTasks(vec![report]), "background_tasks", json);
}

#[test]
fn conversation_keys_are_unique() {
    let mut keys = CONVERSATION_KEYS.to_vec();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), CONVERSATION_KEYS.len());
    assert_eq!(keys.len(), 18);
}

#[tokio::test]
async fn stored_state_read_finds_documents_written_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversations.db");
    let store = SqliteStore::open(
        &path,
        &StoreConfig::default(),
        Arc::new(FakeClock::default()),
    )
    .unwrap();
    let conversation = ConversationId::new("a");
    store
        .create(NewConversation::new(conversation.clone(), "p"))
        .await
        .unwrap();
    let store: &dyn Store = &store;
    write_document(store, &conversation, &FailedSummaries(2))
        .await
        .unwrap();
    write_document(store, &conversation, &SentEdits(None))
        .await
        .unwrap();
    store
        .set_state(
            &conversation,
            Marks::KEY,
            serde_json::json!("of another kind"),
        )
        .await
        .unwrap();
    let mut state = StoredState::read(store, &conversation).await.unwrap();
    assert_eq!(state.take(), Some(FailedSummaries(2)));
    assert_eq!(
        state.take::<FailedSummaries>(),
        None,
        "whoever takes it keeps it"
    );
    assert_eq!(
        state.take(),
        Some(SentEdits(None)),
        "no edits are not the same as nothing known"
    );
    assert_eq!(state.take::<SentPolicy>(), None);
    assert_eq!(state.take_notices(), []);
    assert_eq!(
        state.take::<Marks>(),
        None,
        "what cannot be understood is none"
    );
    let [notice] = state.take_notices().try_into().unwrap();
    assert!(
        notice.code == "stored_state" && notice.message.contains("`marks`"),
        "and the user is told: {notice:?}"
    );
    assert_eq!(
        read_document::<FailedSummaries>(store, &conversation)
            .await
            .unwrap()
            .unwrap()
            .unwrap(),
        FailedSummaries(2)
    );
}
