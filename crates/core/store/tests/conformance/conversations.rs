//! Creating, finding and listing conversations.

use serde_json::json;

use super::create;
use super::logged::sent;
use super::values::{conversation, id, tick, user};
use crate::{
    ConversationMatch, ConversationScope, Fact, Namespace, NewConversation, NewFork, PageEnd,
    Revision, Store, StoreError,
};

pub(crate) async fn create_stores_a_conversation_that_reads_back(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("0123456789"), "project");
    new.description = "why".into();
    new.metadata.insert("parent".into(), json!({"call": "c1"}));
    new.messages = vec![user(1, "one"), user(2, "two")];
    let created = store.create(new.clone()).await.unwrap();
    assert_eq!(created.name, "Conversation 01234567");
    assert_eq!(
        (created.namespace.as_str(), created.description.as_str()),
        ("project", "why")
    );
    assert_eq!(
        (created.created_at, created.updated_at, created.messages),
        (tick(0), tick(0), 2)
    );
    assert_eq!(created.metadata, new.metadata);
    assert_eq!(store.get(&new.id).await.unwrap(), Some(created));
    assert_eq!(store.messages(&new.id).await.unwrap(), new.messages);

    let named = store
        .create(NewConversation::new(conversation("n"), "project").with_name("短い"))
        .await
        .unwrap();
    assert_eq!(named.name, "短い");
}

pub(crate) async fn create_refuses_a_taken_id_and_changes_nothing(store: &dyn Store) {
    create(store, "a", "one").await;
    let mut again = NewConversation::new(conversation("a"), "two");
    again.messages.push(user(1, "one"));
    let error = store.create(again).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::IdTaken { id } if id.as_str() == "a"),
        "{error:?}"
    );
    assert_eq!(
        store
            .get(&conversation("a"))
            .await
            .unwrap()
            .unwrap()
            .namespace,
        "one"
    );
    assert_eq!(store.messages(&conversation("a")).await.unwrap(), []);
}

pub(crate) async fn create_refuses_ids_that_cannot_be_typed(store: &dyn Store) {
    for bad in ["", "a\0b", "a\nb"] {
        let error = store
            .create(NewConversation::new(conversation(bad), "p"))
            .await
            .unwrap_err();
        assert!(
            matches!(error, StoreError::InvalidId { .. }),
            "{bad:?}: {error:?}"
        );
    }
    assert_eq!(store.list(ConversationScope::Everywhere).await.unwrap(), []);
}

pub(crate) async fn create_stores_everything_or_nothing(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("a"), "p");
    new.messages = vec![user(1, "one"), user(1, "again")];
    let error = store.create(new).await.unwrap_err();
    assert!(
        matches!(error, StoreError::MessageIdTaken { .. }),
        "{error:?}"
    );
    assert_eq!(store.get(&conversation("a")).await.unwrap(), None);
}

pub(crate) async fn unknown_conversation_reads_as_empty_and_rejects_writes(store: &dyn Store) {
    let nobody = conversation("nobody");
    assert_eq!(store.get(&nobody).await.unwrap(), None);
    assert_eq!(store.messages(&nobody).await.unwrap(), []);
    assert_eq!(store.facts(&nobody).await.unwrap(), []);
    assert_eq!(store.state(&nobody, "todo").await.unwrap(), None);
    assert_eq!(store.logged_requests(&nobody).await.unwrap(), []);
    assert_eq!(store.logged_request(&nobody, 1).await.unwrap(), None);
    assert_eq!(store.export(&nobody).await.unwrap(), None);
    assert_eq!(store.current_conversation("p").await.unwrap(), None);

    assert_eq!(
        store
            .message_page(&nobody, PageEnd::Newest, 5)
            .await
            .unwrap()
            .messages,
        []
    );
    let refused = [
        store
            .append_message(&nobody, &user(1, "one"))
            .await
            .unwrap_err(),
        store
            .revise_message(&nobody, id(1), Revision::default())
            .await
            .unwrap_err(),
        store.rename(&nobody, "name").await.unwrap_err(),
        store.delete(&nobody).await.unwrap_err(),
        store.restore(&nobody).await.unwrap_err(),
        store
            .fork(&nobody, NewFork::new(conversation("fork")))
            .await
            .unwrap_err(),
        store
            .add_fact(
                &nobody,
                Fact::ToolStarted {
                    message_id: id(1),
                    call_id: "c".into(),
                },
            )
            .await
            .unwrap_err(),
        store
            .set_state(&nobody, "todo", json!([]))
            .await
            .unwrap_err(),
        store
            .set_current_conversation("p", &nobody)
            .await
            .unwrap_err(),
        store
            .log_request(&nobody, sent(&[&user(1, "one")]))
            .await
            .unwrap_err(),
    ];
    for error in refused {
        assert!(
            matches!(&error, StoreError::UnknownConversation { id } if *id == nobody),
            "{error:?}"
        );
    }
    assert_eq!(store.list(ConversationScope::Everywhere).await.unwrap(), []);
}

pub(crate) async fn list_is_per_namespace_and_ordered_by_last_use(store: &dyn Store) {
    for (id, namespace) in [("a", "one"), ("b", "two"), ("c", "one")] {
        create(store, id, namespace).await;
    }
    let ids = async |scope| -> Vec<String> {
        store
            .list(scope)
            .await
            .unwrap()
            .into_iter()
            .map(|listed| listed.id.to_string())
            .collect()
    };
    assert_eq!(ids(ConversationScope::Namespace("one")).await, ["c", "a"]);
    store
        .append_message(&conversation("a"), &user(1, "one"))
        .await
        .unwrap();
    assert_eq!(ids(ConversationScope::Namespace("one")).await, ["a", "c"]);
    assert_eq!(ids(ConversationScope::Everywhere).await, ["a", "c", "b"]);
    assert_eq!(ids(ConversationScope::Namespace("three")).await, [""; 0]);

    let listed = store
        .list(ConversationScope::Namespace("two"))
        .await
        .unwrap();
    assert_eq!(
        serde_json::to_value(&listed).unwrap(),
        json!([{
            "id": "b", "name": "Conversation b", "namespace": "two",
            "created_at": tick(1).to_string(), "updated_at": tick(1).to_string(), "messages": 0,
        }])
    );
}

pub(crate) async fn unnamed_namespace_is_the_default_one(store: &dyn Store) {
    create(store, "a", "").await;
    store
        .set_current_conversation("", &conversation("a"))
        .await
        .unwrap();
    assert_eq!(
        store
            .list(ConversationScope::Namespace("default"))
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        store
            .list(ConversationScope::Namespace(""))
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        store.current_conversation("default").await.unwrap(),
        Some(conversation("a"))
    );
}

pub(crate) async fn find_takes_an_id_a_prefix_or_a_name(store: &dyn Store) {
    for (id, name, namespace) in [
        ("abc1", "first", "one"),
        ("abc2", "second", "one"),
        ("abc", "abc2", "two"),
        ("100%", "短い", "one"),
    ] {
        store
            .create(NewConversation::new(conversation(id), namespace).with_name(name))
            .await
            .unwrap();
    }
    let one = async |text: &str, scope| match store.find_conversation(text, scope).await.unwrap() {
        ConversationMatch::One(found) => found.id.to_string(),
        ConversationMatch::Nothing => "nothing".into(),
        ConversationMatch::Several(found) => format!("{} candidates", found.len()),
    };
    let here = ConversationScope::Namespace("one");
    assert_eq!(one("abc1", here).await, "abc1");
    assert_eq!(
        one("abc2", ConversationScope::Everywhere).await,
        "abc2",
        "an exact id wins over a name"
    );
    assert_eq!(
        one("abc", here).await,
        "abc",
        "an exact id counts in every namespace"
    );
    assert_eq!(one("ab", here).await, "2 candidates");
    assert_eq!(
        one("ab", ConversationScope::Everywhere).await,
        "3 candidates"
    );
    assert_eq!(one("ab", ConversationScope::Namespace("two")).await, "abc");
    assert_eq!(one("second", here).await, "abc2");
    assert_eq!(
        one("sec", here).await,
        "nothing",
        "a name counts only whole"
    );
    assert_eq!(one("短い", here).await, "100%");
    assert_eq!(one("10", here).await, "100%");
    assert_eq!(
        one("1%", here).await,
        "nothing",
        "no character is a wildcard"
    );
    assert_eq!(one("", here).await, "nothing");
}

pub(crate) async fn current_conversation_is_per_namespace(store: &dyn Store) {
    create(store, "a", "one").await;
    create(store, "b", "one").await;
    store
        .set_current_conversation("one", &conversation("a"))
        .await
        .unwrap();
    store
        .set_current_conversation("two", &conversation("b"))
        .await
        .unwrap();
    store
        .set_current_conversation("one", &conversation("b"))
        .await
        .unwrap();
    assert_eq!(
        store.current_conversation("one").await.unwrap(),
        Some(conversation("b"))
    );
    assert_eq!(
        store.current_conversation("two").await.unwrap(),
        Some(conversation("b"))
    );
    assert_eq!(store.current_conversation("three").await.unwrap(), None);
    let at_once = NewConversation {
        make_current: true,
        ..NewConversation::new(conversation("c"), "three")
    };
    store.create(at_once).await.unwrap();
    assert_eq!(
        store.current_conversation("three").await.unwrap(),
        Some(conversation("c"))
    );
}

pub(crate) async fn rename_changes_the_name_and_rejects_empty_ones(store: &dyn Store) {
    create(store, "a", "p").await;
    let before = store.get(&conversation("a")).await.unwrap().unwrap();
    store
        .rename(&conversation("a"), "另一个名字")
        .await
        .unwrap();
    let after = store.get(&conversation("a")).await.unwrap().unwrap();
    assert_eq!(
        (after.name.as_str(), after.updated_at),
        ("另一个名字", before.updated_at)
    );
    for bad in ["", " ", "a\nb"] {
        let error = store.rename(&conversation("a"), bad).await.unwrap_err();
        assert!(
            matches!(&error, StoreError::InvalidName { name } if name == bad),
            "{error:?}"
        );
    }
    assert_eq!(store.get(&conversation("a")).await.unwrap(), Some(after));
}

pub(crate) async fn deleted_conversation_is_unknown_until_restored(store: &dyn Store) {
    create(store, "a", "p").await;
    create(store, "b", "p").await;
    let a = conversation("a");
    store.append_message(&a, &user(1, "one")).await.unwrap();
    store
        .add_fact(
            &a,
            Fact::ToolStarted {
                message_id: id(1),
                call_id: "c".into(),
            },
        )
        .await
        .unwrap();
    store.set_state(&a, "todo", json!(1)).await.unwrap();
    store
        .log_request(&a, sent(&[&user(1, "one")]))
        .await
        .unwrap();
    store.set_current_conversation("p", &a).await.unwrap();
    let before = store.export(&a).await.unwrap();

    store.delete(&a).await.unwrap();
    assert_eq!(store.get(&a).await.unwrap(), None);
    assert_eq!(store.messages(&a).await.unwrap(), []);
    assert_eq!(
        store
            .message_page(&a, PageEnd::Newest, 5)
            .await
            .unwrap()
            .messages,
        []
    );
    assert_eq!(store.facts(&a).await.unwrap(), []);
    assert_eq!(store.state(&a, "todo").await.unwrap(), None);
    assert_eq!(store.logged_requests(&a).await.unwrap(), []);
    assert_eq!(store.logged_request(&a, 1).await.unwrap(), None);
    assert_eq!(store.export(&a).await.unwrap(), None);
    assert_eq!(store.current_conversation("p").await.unwrap(), None);
    assert_eq!(
        store
            .find_conversation("a", ConversationScope::Everywhere)
            .await
            .unwrap(),
        ConversationMatch::Nothing
    );
    assert_eq!(
        store
            .list(ConversationScope::Everywhere)
            .await
            .unwrap()
            .len(),
        1
    );
    let refused = [
        store.append_message(&a, &user(2, "two")).await.unwrap_err(),
        store
            .revise_message(&a, id(1), Revision::default())
            .await
            .unwrap_err(),
        store.rename(&a, "name").await.unwrap_err(),
        store.delete(&a).await.unwrap_err(),
        store
            .fork(&a, NewFork::new(conversation("fork")))
            .await
            .unwrap_err(),
        store.set_current_conversation("p", &a).await.unwrap_err(),
        store
            .log_request(&a, sent(&[&user(1, "one")]))
            .await
            .unwrap_err(),
    ];
    for error in refused {
        assert!(
            matches!(&error, StoreError::UnknownConversation { .. }),
            "{error:?}"
        );
    }
    let taken = store
        .create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap_err();
    assert!(
        matches!(taken, StoreError::IdTaken { .. }),
        "its id stays its own: {taken:?}"
    );
    let trash = store.list(ConversationScope::Trash).await.unwrap();
    assert_eq!(
        trash
            .iter()
            .map(|listed| listed.id.as_str())
            .collect::<Vec<_>>(),
        ["a"]
    );
    assert!(
        matches!(store.find_conversation("Conversation a", ConversationScope::Trash).await.unwrap(), ConversationMatch::One(found) if found.id == a)
    );
    assert_eq!(
        store
            .find_conversation("b", ConversationScope::Trash)
            .await
            .unwrap(),
        ConversationMatch::Nothing
    );

    assert_eq!(store.restore(&a).await.unwrap().messages, 1);
    assert_eq!(store.export(&a).await.unwrap(), before);
    assert_eq!(
        store.current_conversation("p").await.unwrap(),
        Some(a.clone())
    );
    assert_eq!(store.facts(&a).await.unwrap().len(), 1);
    assert_eq!(store.list(ConversationScope::Trash).await.unwrap(), []);
    store.restore(&a).await.unwrap();
}

pub(crate) async fn namespaces_are_listed_with_counts_and_current_conversation(store: &dyn Store) {
    for (id, namespace) in [("a", "one"), ("b", "two"), ("c", "one"), ("d", "gone")] {
        create(store, id, namespace).await;
    }
    store
        .set_current_conversation("one", &conversation("c"))
        .await
        .unwrap();
    store
        .set_current_conversation("empty", &conversation("a"))
        .await
        .unwrap();
    store.delete(&conversation("d")).await.unwrap();
    let namespace = |name: &str, conversations, current: Option<&str>| Namespace {
        namespace: name.into(),
        conversations,
        current: current.map(conversation),
    };
    let expected = [
        namespace("empty", 0, Some("a")),
        namespace("one", 2, Some("c")),
        namespace("two", 1, None),
    ];
    assert_eq!(store.namespaces().await.unwrap(), expected);
}

pub(crate) async fn statistics_count_operations_and_stored_items(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("a"), "p");
    new.messages = vec![user(1, "one"), user(2, "two")];
    store.create(new).await.unwrap();
    create(store, "b", "q").await;
    store
        .append_message(&conversation("a"), &user(3, "three"))
        .await
        .unwrap();
    store
        .revise_message(&conversation("a"), id(3), Revision::default())
        .await
        .unwrap();
    store
        .fork(&conversation("a"), NewFork::new(conversation("fork")))
        .await
        .unwrap();
    store
        .log_request(&conversation("a"), sent(&[&user(1, "one")]))
        .await
        .unwrap();
    store.delete(&conversation("b")).await.unwrap();
    store.messages(&conversation("a")).await.unwrap();
    let done = store.statistics();
    assert_eq!(
        (
            done.conversations_created,
            done.messages_added,
            done.conversations_loaded
        ),
        (3, 3, 1)
    );
    let totals = store.totals().await.unwrap();
    assert_eq!(
        (totals.conversations, totals.in_trash, totals.namespaces),
        (2, 1, 1)
    );
    assert_eq!(
        (totals.messages, totals.revisions, totals.requests),
        (3, 1, 1),
        "shared messages count once"
    );
    assert!(totals.bytes > 0);
}
