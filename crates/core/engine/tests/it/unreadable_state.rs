//! Documents stored with a conversation that can't be read: the run continues without them, and the
//! user gets one notice.

use haft_context::Policy;
use haft_testkit::{Reply, Script};
use haft_types::{ConversationId, Event, EventBody};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::desk::{CONVERSATION, Desk};

#[tokio::test]
async fn session_reports_an_unreadable_state_document_once() {
    let script = Script::replies([Reply::text("Done."), Reply::text("Done.")]).unwrap();
    let desk = Desk::new(script, Vec::new()).await.unwrap();
    for key in ["edits", "todo"] {
        desk.store
            .set_state(
                &ConversationId::new(CONVERSATION),
                key,
                json!({"of": ["another", "kind"]}),
            )
            .await
            .unwrap();
    }
    let mut session = desk
        .open(Policy::default(), "context_window = 100_000")
        .await
        .unwrap();
    let mut notices = Vec::new();
    let mut tell = |event: &Event| {
        if let EventBody::Error { code, message } = &event.body {
            notices.push((code.clone(), message.clone()));
        }
    };
    for input in ["one", "two"] {
        let report = session
            .run(Some(input.into()), &mut tell, &CancellationToken::new())
            .await;
        assert_eq!(report.result.text, "Done.", "{}", report.result.message);
    }
    for key in ["`edits`", "`todo`"] {
        let of_key = notices
            .iter()
            .filter(|(code, message)| code == "stored_state" && message.contains(key));
        assert_eq!(of_key.count(), 1, "{notices:?}");
    }
}
