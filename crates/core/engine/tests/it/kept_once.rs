//! Tests that the messages of an open conversation are in memory only once.

use haft_context::Policy;
use haft_testkit::{Reply, Script};
use haft_types::{ConversationId, Event};
use tokio_util::sync::CancellationToken;

use crate::desk::{CONVERSATION, Desk};

#[tokio::test]
async fn store_keeps_no_copy_of_an_open_conversation() {
    let desk = Desk::new(Script::replies([Reply::text("Done.")]).unwrap(), Vec::new())
        .await
        .unwrap();
    let mut session = desk
        .open(Policy::default(), "context_window = 100_000")
        .await
        .unwrap();
    let report = session
        .run(
            Some("go".into()),
            &mut |_: &Event| (),
            &CancellationToken::new(),
        )
        .await;
    assert_eq!(report.result.text, "Done.", "{}", report.result.message);
    drop(session);
    let session = desk
        .open(Policy::default(), "context_window = 100_000")
        .await
        .unwrap();
    assert_eq!(session.history().len(), 2);
    let read_by_others = desk
        .store
        .messages(&ConversationId::new(CONVERSATION))
        .await
        .unwrap();
    assert_eq!(read_by_others.len(), 2);
    let statistics = desk.store.statistics();
    assert_eq!(
        (statistics.cache_hits, statistics.cache_misses),
        (0, 1),
        "the session left no copy to be read"
    );
}
