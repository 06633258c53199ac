//! Tests of messages in memory and in the store, without a model.

use haft_model::O200k;
use haft_store::{SqliteStore, Store, StoreConfig};
use haft_testkit::support::{FakeClock, SequentialIds};
use haft_tool::NoChangeRecords;
use haft_types::Timestamp;

use super::*;
use crate::agents::hub::Hub;
use crate::budget::shared_budget::SharedBudget;
use crate::session::model_opener::ModelOpener;
use crate::stored_state::FailedSummaries;

const SECRET: &str = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

/// Returns a transcript in a new store.
pub(crate) async fn transcript() -> (tempfile::TempDir, Arc<dyn Store>, Transcript) {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(FakeClock::default());
    let path = folder.path().join("conversations.db");
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&path, &StoreConfig::default(), clock.clone()).unwrap());
    let transcript = load(&store, clock, Vec::new(), false).await;
    (folder, store, transcript)
}

/// The services of a session that changes no files and opens no other model.
pub(crate) fn shared_services(
    store: &Arc<dyn Store>,
    clock: Arc<FakeClock>,
) -> Arc<SharedServices> {
    Arc::new(SharedServices {
        store: Arc::clone(store),
        changes: Arc::new(NoChangeRecords),
        copies: None,
        counter: Arc::new(O200k),
        clock,
        ids: Arc::new(SequentialIds::starting_at(0x0100_0000)),
        opener: ModelOpener::new(|name| Err(format!("there is no model `{name}`"))),
        hub: Arc::new(Hub::with_groups([])),
        budget: SharedBudget::default(),
    })
}

async fn load(
    store: &Arc<dyn Store>,
    clock: Arc<FakeClock>,
    messages: Vec<Message>,
    resumed: bool,
) -> Transcript {
    let services = shared_services(store, clock);
    let conversation = Conversation {
        id: ConversationId::new("a"),
        name: "A".into(),
        namespace: "p".into(),
        description: String::new(),
        metadata: Metadata::new(),
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
        messages: 0,
        revisions: 0,
    };
    let found = FoundConversation {
        conversation,
        resumed,
        messages,
        lock: None,
    };
    Transcript::load(services, Masker::default(), found, OnCreation::MakeCurrent)
        .await
        .unwrap()
}

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: "edit".into(),
        arguments: "{}".into(),
        signature: None,
    }
}

#[tokio::test]
async fn append_user_creates_the_conversation_with_the_first_message() {
    let (_folder, store, mut transcript) = transcript().await;
    assert!(!transcript.is_stored());
    assert_eq!(store.get(transcript.id()).await.unwrap(), None);
    transcript
        .append_user(format!("use {SECRET}"), Origin::User)
        .await
        .unwrap();
    assert!(transcript.is_stored());
    assert_eq!(
        store.current_conversation("p").await.unwrap().as_ref(),
        Some(transcript.id())
    );
    let stored = store.messages(transcript.id()).await.unwrap();
    assert_eq!(
        stored[0],
        transcript.history()[0].message,
        "what is in memory is what is stored"
    );
    assert!(!stored[0].joined_text().contains(SECRET));
    // Other documents are stored with the conversation.
    transcript.store_state(&FailedSummaries(1)).await.unwrap();
    let kept = stored_state::read_document::<FailedSummaries>(store.as_ref(), transcript.id())
        .await
        .unwrap();
    assert_eq!(kept.unwrap().unwrap(), FailedSummaries(1));
}

#[tokio::test]
async fn append_numbers_results_within_the_round() {
    let (_folder, _store, mut transcript) = transcript().await;
    for round in 1..=2 {
        transcript
            .append_user("do it".into(), Origin::User)
            .await
            .unwrap();
        let reply = transcript.draft_message(
            Role::Assistant,
            vec![Part::ToolCall(call("1")), Part::ToolCall(call("2"))],
        );
        transcript.append(reply).await.unwrap();
        for id in ["1", "2"] {
            transcript
                .append_result(&call(id), "edit_file", done_result())
                .await
                .unwrap();
        }
        assert_eq!(transcript.round_count(), round);
    }
    let steps: Vec<_> = transcript
        .history()
        .iter()
        .filter_map(|one| one.message.metadata.get("step"))
        .collect();
    assert_eq!(steps, [1, 2, 1, 2]);
    assert_eq!(
        transcript.history().last().unwrap().message.metadata[TOOL_NAME_KEY],
        "edit_file"
    );
    assert_eq!(transcript.last_stop_reason(), StopReason::ToolUse);
    assert_eq!(transcript.newest_text(Role::User, 2), "do");
}

#[tokio::test]
async fn resumption_knows_begun_calls_and_finished_turns() {
    let (_folder, store, mut transcript) = transcript().await;
    transcript
        .append_user("do it".into(), Origin::User)
        .await
        .unwrap();
    let reply = transcript.draft_message(Role::Assistant, vec![Part::ToolCall(call("1"))]);
    transcript.append(reply).await.unwrap();
    transcript.record_call_start(&call("1")).await.unwrap();
    let id = transcript.id().clone();
    let again = load(
        &store,
        Arc::default(),
        store.messages(&id).await.unwrap(),
        true,
    )
    .await;
    assert_eq!(again.plan_resumption(None).uncertain, [call("1")]);
    assert!(!again.last_turn_ended());
    assert_eq!(again.last_reply_id(), transcript.last_reply_id());
    let answer = transcript.draft_text_message(Role::Assistant, "Done.");
    transcript.append(answer).await.unwrap();
    transcript
        .record_turn_end(Outcome::Completed)
        .await
        .unwrap();
    let again = load(
        &store,
        Arc::default(),
        store.messages(&id).await.unwrap(),
        true,
    )
    .await;
    assert!(again.last_turn_ended());
}

fn done_result() -> ResultParts {
    ResultParts {
        envelope: Envelope::success("done"),
        images: Vec::new(),
        changed: vec!["a.rs".to_owned()],
    }
}

#[tokio::test]
async fn history_does_not_reserve_more_than_it_holds() {
    let (_folder, store, _) = transcript().await;
    let id = |n: u32| MessageId::from_hash(haft_types::ContentHash::from_content(&n.to_le_bytes()));
    let messages = (0..1_000)
        .map(|n| Message::from_text(id(n), Role::User, "hi", Timestamp::UNIX_EPOCH))
        .collect();
    let loaded = load(&store, Arc::new(FakeClock::default()), messages, false).await;
    assert!(
        loaded.history.capacity() <= 2_000,
        "{}",
        loaded.history.capacity()
    );
}
