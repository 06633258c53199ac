//! Property tests: every message is read back unchanged.

use haft_store::{ConversationDocument, NewConversation, SqliteStore, Store};
use haft_types::Message;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::any_message::message;
use crate::support::{Place, conversation};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    (0..6_u32).prop_flat_map(|count| (0..count).map(message).collect::<Vec<_>>())
}

#[test]
fn append_and_export_keep_any_message_unchanged() {
    let place = Place::new();
    let store = place.open();
    let mut case = 0;
    let mut check = |messages: Vec<Message>| {
        case += 1;
        let id = conversation(&format!("case {case}"));
        block_on(append_all(&store, &id, &messages));
        assert_eq!(block_on(store.messages(&id)).unwrap(), messages);
        let document = block_on(store.export(&id)).unwrap().unwrap();
        assert_eq!(document.messages, messages);
        let text = serde_json::to_string_pretty(&document).unwrap();
        assert_eq!(
            serde_json::from_str::<ConversationDocument>(&text).unwrap(),
            document
        );
        Ok(())
    };
    // No file of past failures: a failure prints its seed, which becomes a test.
    let config = Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    };
    let cases = std::cell::RefCell::new(&mut check);
    TestRunner::new(config)
        .run(&messages(), |messages| (cases.borrow_mut())(messages))
        .unwrap();
}

async fn append_all(store: &SqliteStore, id: &haft_types::ConversationId, messages: &[Message]) {
    store
        .create(NewConversation::new(id.clone(), "p"))
        .await
        .unwrap();
    for message in messages {
        store.append_message(id, message).await.unwrap();
    }
}
