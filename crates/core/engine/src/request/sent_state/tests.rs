//! Tests of the state kept between requests, without a model.

use haft_model::O200k;
use haft_types::{Origin, Part};

use super::*;
use crate::session::transcript::tests::transcript;

fn empty() -> SentState {
    SentState::restore(
        LoggedState::default(),
        &[],
        &O200k,
        &mut StoredState::default(),
    )
}

async fn restored(store: &dyn Store, transcript: &Transcript) -> SentState {
    let mut state = StoredState::read(store, transcript.id()).await.unwrap();
    SentState::restore(
        LoggedState::default(),
        transcript.history(),
        &O200k,
        &mut state,
    )
}

#[tokio::test]
async fn note_failure_counts_across_processes() {
    let (_folder, store, mut transcript) = transcript().await;
    let mut sent = empty();
    sent.record_failure(&transcript).await.unwrap();
    transcript
        .append_user("one".into(), Origin::User)
        .await
        .unwrap();
    for _ in 0..2 {
        assert!(!sent.has_stopped_compacting());
        sent.record_failure(&transcript).await.unwrap();
    }
    assert!(sent.has_stopped_compacting());
    assert!(
        restored(store.as_ref(), &transcript)
            .await
            .has_stopped_compacting()
    );
    sent.reset_failures(&transcript).await.unwrap();
    assert!(
        !restored(store.as_ref(), &transcript)
            .await
            .has_stopped_compacting()
    );
}

#[tokio::test]
async fn edit_stores_the_edit_before_it_applies() {
    let (_folder, store, mut transcript) = transcript().await;
    transcript
        .append_user("one".into(), Origin::User)
        .await
        .unwrap();
    let id = transcript.history()[0].message.message_id;
    let mut sent = empty();
    sent.add_edit(
        ContextEdit::Pin { ids: [id].into() },
        store.as_ref(),
        &transcript,
    )
    .await
    .unwrap();
    assert_eq!(
        restored(store.as_ref(), &transcript).await.edits(),
        sent.edits()
    );
    // Another process stored a document of an unknown form: it is not overwritten.
    store
        .set_state(
            transcript.id(),
            "edits",
            serde_json::json!([{"edit": "new kind"}]),
        )
        .await
        .unwrap();
    let refused = sent
        .add_edit(ContextEdit::Undo { edits: 1 }, store.as_ref(), &transcript)
        .await;
    assert!(matches!(refused, Err(EditContextError::Unreadable(_))));
    assert_eq!(sent.edits().edits_in_force().len(), 1);
}

#[tokio::test]
async fn history_with_input_adds_input_only_where_the_model_waits() {
    let (_folder, _store, mut transcript) = transcript().await;
    let sent = empty();
    let count =
        |transcript: &Transcript| sent.history_with_input(transcript.history(), &O200k).len();
    assert_eq!(count(&transcript), 1, "nothing was said yet");
    transcript
        .append_user("one".into(), Origin::User)
        .await
        .unwrap();
    assert_eq!(count(&transcript), 1, "the model is about to answer");
    let reply = transcript.draft_message(Role::Assistant, vec![Part::from_text("Done.")]);
    transcript.append(reply).await.unwrap();
    assert_eq!(count(&transcript), 3);
    assert!(
        !sent.contains_unchanged(&transcript.history()[0]),
        "nothing was sent"
    );
}

#[tokio::test]
async fn stand_in_is_sent_until_a_summary_replaces_it() {
    let (_folder, store, mut transcript) = transcript().await;
    transcript
        .append_user("one".into(), Origin::User)
        .await
        .unwrap();
    let mut sent = empty();
    let message = transcript.draft_text_message(Role::Summary, "Kept.");
    sent.set_stand_in(message, &O200k, &transcript)
        .await
        .unwrap();
    assert!(sent.stand_in_message().is_some());
    assert_eq!(sent.history_to_send(transcript.history()).len(), 2);
    assert!(
        restored(store.as_ref(), &transcript)
            .await
            .stand_in_message()
            .is_none(),
        "it goes on with no message that is there"
    );
    sent.clear_stand_in(&transcript).await.unwrap();
    assert_eq!(sent.history_to_send(transcript.history()).len(), 1);
}
