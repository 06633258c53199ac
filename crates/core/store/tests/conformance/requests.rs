//! The log of requests.

use haft_types::{Message, Part, Role};

use super::create;
use super::logged::{assert_logged, sent};
use super::values::{conversation, id, tick, user};
use crate::{NewFork, Revision, Store, StoreError};

pub(crate) async fn request_is_restored_from_the_log(store: &dyn Store) {
    create(store, "a", "p").await;
    create(store, "b", "p").await;
    let a = conversation("a");
    let system = Message::from_text(id(0xff), Role::System, "You are haft.", tick(0));
    let other_system = Message::from_text(id(0xfe), Role::System, "You are another.", tick(0));
    let messages: Vec<_> = (1..=4).map(|n| user(n, &format!("message {n}"))).collect();
    for message in &messages {
        store.append_message(&a, message).await.unwrap();
    }
    let [one, two, three, four] = messages.as_slice() else {
        unreachable!()
    };
    let all = [
        sent(&[&system, one]),
        sent(&[&system, one, two, three]),
        sent(&[&system, one, two, three, four]),
        sent(&[&other_system, one, two]),
        sent(&[&other_system, one]),
        sent(&[&other_system, one]),
    ];
    for request in &all {
        drop(store.log_request(&a, request.clone()));
        drop(store.log_request(&conversation("b"), request.clone()));
    }
    store.flush().await.unwrap();
    let log = store.logged_requests(&a).await.unwrap();
    assert_eq!(
        log.iter().map(|line| line.kept).collect::<Vec<_>>(),
        [0, 2, 4, 0, 2, 2]
    );
    assert_eq!(
        log.iter().map(|line| line.segments).collect::<Vec<_>>(),
        [2, 4, 5, 3, 2, 2]
    );
    assert_eq!(
        log.iter().map(|line| line.number).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
    for (number, request) in (1..).zip(&all) {
        assert_logged(store, "a", number, request).await;
        // None of the messages are stored here: all of them came from the engine.
        assert_logged(store, "b", number, request).await;
    }
    for beyond in [0, 7, u64::MAX] {
        assert_eq!(store.logged_request(&a, beyond).await.unwrap(), None);
    }
}

pub(crate) async fn request_keeps_a_changed_message_as_sent(store: &dyn Store) {
    create(store, "a", "p").await;
    let whole = user(1, "a long text");
    store
        .append_message(&conversation("a"), &whole)
        .await
        .unwrap();
    let cleared = user(1, "[cleared]");
    let first = sent(&[&user(9, "system"), &whole]);
    let second = sent(&[&user(9, "system"), &cleared]);
    assert_eq!(
        store
            .log_request(&conversation("a"), first.clone())
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        store
            .log_request(&conversation("a"), second.clone())
            .await
            .unwrap(),
        2
    );
    assert_logged(store, "a", 1, &first).await;
    assert_logged(store, "a", 2, &second).await;
    assert_eq!(store.messages(&conversation("a")).await.unwrap(), [whole]);
}

pub(crate) async fn flush_reports_a_failed_write_of_a_dropped_future(store: &dyn Store) {
    store.flush().await.unwrap();
    drop(store.log_request(&conversation("nobody"), sent(&[&user(1, "one")])));
    let error = store.flush().await.unwrap_err();
    assert!(
        matches!(error, StoreError::UnknownConversation { .. }),
        "{error:?}"
    );
    store.flush().await.unwrap();
}

pub(crate) async fn request_of_a_fork_is_restored_from_shared_messages(store: &dyn Store) {
    create(store, "a", "p").await;
    let messages: Vec<_> = (1..=3).map(|n| user(n, &format!("message {n}"))).collect();
    for message in &messages {
        store
            .append_message(&conversation("a"), message)
            .await
            .unwrap();
    }
    let fork = NewFork {
        at: Some(id(2)),
        ..NewFork::new(conversation("b"))
    };
    store.fork(&conversation("a"), fork).await.unwrap();
    store
        .append_message(&conversation("b"), &user(4, "its own"))
        .await
        .unwrap();
    let request = sent(&[&messages[0], &messages[1], &user(4, "its own")]);
    assert_eq!(
        store
            .log_request(&conversation("b"), request.clone())
            .await
            .unwrap(),
        1,
        "its log is its own"
    );
    assert_logged(store, "b", 1, &request).await;
    // Later changes of the origin have no effect.
    let content = Some(vec![Part::from_text("revised")]);
    store
        .revise_message(
            &conversation("a"),
            id(1),
            Revision {
                content,
                ..Revision::default()
            },
        )
        .await
        .unwrap();
    store.delete(&conversation("a")).await.unwrap();
    assert_logged(store, "b", 1, &request).await;
}

pub(crate) async fn request_keeps_a_revised_message_as_sent(store: &dyn Store) {
    create(store, "a", "p").await;
    let before = user(1, "before");
    store
        .append_message(&conversation("a"), &before)
        .await
        .unwrap();
    let first = sent(&[&before]);
    store
        .log_request(&conversation("a"), first.clone())
        .await
        .unwrap();
    let content = Some(vec![Part::from_text("after")]);
    let after = store
        .revise_message(
            &conversation("a"),
            id(1),
            Revision {
                content,
                ..Revision::default()
            },
        )
        .await
        .unwrap();
    let second = sent(&[&after]);
    store
        .log_request(&conversation("a"), second.clone())
        .await
        .unwrap();
    assert_logged(store, "a", 1, &first).await;
    assert_logged(store, "a", 2, &second).await;
}
