//! What every store promises, written against the trait so that each implementation runs the same checks.
//!
//! Each check gets an empty store whose clock is [`Ticking`](crate::support::Ticking).

use haft_store::{Fact, Found, NewConversation, Scope, Store, StoreError, Swap};
use haft_types::{Message, Outcome, Role};
use serde_json::json;

use crate::request_log::{assert_logged, sent};
use crate::support::{Place, conversation, id, tick, user};

/// Runs each named check against every implementation.
macro_rules! contract {
    ($($check:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $check() {
                    let place = super::Place::new();
                    super::$check(&place.open()).await;
                }
            )+
        }
    };
}

contract!(
    a_new_conversation_reads_back,
    a_taken_id_is_refused_and_changes_nothing,
    an_id_nobody_could_type_is_refused,
    creating_is_all_or_nothing,
    messages_keep_their_order_and_move_the_updated_time,
    a_taken_message_id_is_refused_and_changes_nothing,
    the_same_message_id_may_be_in_two_conversations,
    an_unknown_conversation_reads_as_nothing_and_takes_no_writes,
    lists_are_per_namespace_and_last_used_first,
    the_unnamed_namespace_is_default,
    find_takes_an_id_a_prefix_or_a_name,
    each_namespace_has_its_current_conversation,
    facts_are_about_messages_that_exist,
    states_replace_each_other,
    a_project_keeps_states_beside_its_conversations,
    a_swap_never_undoes_what_another_wrote,
    an_export_is_the_documented_json,
    requests_are_made_whole_again,
    a_changed_message_is_logged_as_it_was_sent,
    a_failed_write_nobody_waited_for_is_told_by_flush,
    a_dropped_append_still_happens,
);

async fn create(store: &dyn Store, id: &str, namespace: &str) {
    store.create(NewConversation::new(conversation(id), namespace)).await.unwrap();
}

async fn a_new_conversation_reads_back(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("0123456789"), "project");
    new.description = "why".into();
    new.metadata.insert("parent".into(), json!({"call": "c1"}));
    new.messages = vec![user(1, "one"), user(2, "two")];
    let created = store.create(new.clone()).await.unwrap();
    assert_eq!(created.name, "Conversation 01234567");
    assert_eq!((created.namespace.as_str(), created.description.as_str()), ("project", "why"));
    assert_eq!((created.created_at, created.updated_at, created.messages), (tick(0), tick(0), 2));
    assert_eq!(created.metadata, new.metadata);
    assert_eq!(store.get(&new.id).await.unwrap(), Some(created));
    assert_eq!(store.messages(&new.id).await.unwrap(), new.messages);

    let named = store.create(NewConversation::new(conversation("n"), "project").named("短い")).await.unwrap();
    assert_eq!(named.name, "短い");
}

async fn a_taken_id_is_refused_and_changes_nothing(store: &dyn Store) {
    create(store, "a", "one").await;
    let mut again = NewConversation::new(conversation("a"), "two");
    again.messages.push(user(1, "one"));
    let error = store.create(again).await.unwrap_err();
    assert!(matches!(&error, StoreError::IdTaken { id } if id.as_str() == "a"), "{error:?}");
    assert_eq!(store.get(&conversation("a")).await.unwrap().unwrap().namespace, "one");
    assert_eq!(store.messages(&conversation("a")).await.unwrap(), []);
}

async fn an_id_nobody_could_type_is_refused(store: &dyn Store) {
    for bad in ["", "a\0b", "a\nb"] {
        let error = store.create(NewConversation::new(conversation(bad), "p")).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidId { .. }), "{bad:?}: {error:?}");
    }
    assert_eq!(store.list(Scope::Everywhere).await.unwrap(), []);
}

async fn creating_is_all_or_nothing(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("a"), "p");
    new.messages = vec![user(1, "one"), user(1, "again")];
    let error = store.create(new).await.unwrap_err();
    assert!(matches!(error, StoreError::MessageIdTaken { .. }), "{error:?}");
    assert_eq!(store.get(&conversation("a")).await.unwrap(), None);
}

async fn messages_keep_their_order_and_move_the_updated_time(store: &dyn Store) {
    create(store, "a", "p").await;
    create(store, "b", "p").await;
    let (a, b) = (conversation("a"), conversation("b"));
    // Ids and times say nothing about the order.
    let messages: Vec<_> = [9, 3, 7, 1].map(|n| user(n, &n.to_string())).into();
    for message in &messages {
        store.append(&a, message).await.unwrap();
        store.append(&b, &user(message.message_id.short().0 + 100, "other")).await.unwrap();
    }
    assert_eq!(store.messages(&a).await.unwrap(), messages);
    let read = store.get(&a).await.unwrap().unwrap();
    assert_eq!((read.messages, read.created_at, read.updated_at), (4, tick(0), tick(8)));
}

async fn a_taken_message_id_is_refused_and_changes_nothing(store: &dyn Store) {
    create(store, "a", "p").await;
    let a = conversation("a");
    store.append(&a, &user(1, "one")).await.unwrap();
    let before = store.get(&a).await.unwrap();

    let same = store.append(&a, &user(1, "again")).await.unwrap_err();
    assert!(matches!(same, StoreError::MessageIdTaken { message, taken_by, .. } if message == taken_by), "{same:?}");
    let mut twin = user(1, "twin");
    twin.message_id = "00000001-1111-4000-8000-000000000000".parse().unwrap();
    let short = store.append(&a, &twin).await.unwrap_err();
    assert!(
        matches!(short, StoreError::MessageIdTaken { message, taken_by, .. } if message == twin.message_id && taken_by == id(1)),
        "{short:?}"
    );

    assert_eq!(store.get(&a).await.unwrap(), before);
    store.append(&a, &user(2, "two")).await.unwrap();
    assert_eq!(store.messages(&a).await.unwrap(), [user(1, "one"), user(2, "two")]);
}

async fn the_same_message_id_may_be_in_two_conversations(store: &dyn Store) {
    for name in ["a", "fork"] {
        create(store, name, "p").await;
        store.append(&conversation(name), &user(1, "one")).await.unwrap();
        assert_eq!(store.messages(&conversation(name)).await.unwrap(), [user(1, "one")]);
    }
}

async fn an_unknown_conversation_reads_as_nothing_and_takes_no_writes(store: &dyn Store) {
    let nobody = conversation("nobody");
    assert_eq!(store.get(&nobody).await.unwrap(), None);
    assert_eq!(store.messages(&nobody).await.unwrap(), []);
    assert_eq!(store.facts(&nobody).await.unwrap(), []);
    assert_eq!(store.state(&nobody, "todo").await.unwrap(), None);
    assert_eq!(store.requests(&nobody).await.unwrap(), []);
    assert_eq!(store.request(&nobody, 1).await.unwrap(), None);
    assert_eq!(store.export(&nobody).await.unwrap(), None);
    assert_eq!(store.current("p").await.unwrap(), None);

    let refused = [
        store.append(&nobody, &user(1, "one")).await.unwrap_err(),
        store.note(&nobody, Fact::ToolStarted { message_id: id(1), call_id: "c".into() }).await.unwrap_err(),
        store.set_state(&nobody, "todo", json!([])).await.unwrap_err(),
        store.set_current("p", &nobody).await.unwrap_err(),
        store.log_request(&nobody, sent(&[&user(1, "one")])).await.unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(&error, StoreError::UnknownConversation { id } if *id == nobody), "{error:?}");
    }
    assert_eq!(store.list(Scope::Everywhere).await.unwrap(), []);
}

async fn lists_are_per_namespace_and_last_used_first(store: &dyn Store) {
    for (id, namespace) in [("a", "one"), ("b", "two"), ("c", "one")] {
        create(store, id, namespace).await;
    }
    let ids = async |scope| -> Vec<String> {
        store.list(scope).await.unwrap().into_iter().map(|listed| listed.id.to_string()).collect()
    };
    assert_eq!(ids(Scope::Namespace("one")).await, ["c", "a"]);
    store.append(&conversation("a"), &user(1, "one")).await.unwrap();
    assert_eq!(ids(Scope::Namespace("one")).await, ["a", "c"]);
    assert_eq!(ids(Scope::Everywhere).await, ["a", "c", "b"]);
    assert_eq!(ids(Scope::Namespace("three")).await, [""; 0]);

    let listed = store.list(Scope::Namespace("two")).await.unwrap();
    assert_eq!(
        serde_json::to_value(&listed).unwrap(),
        json!([{
            "id": "b", "name": "Conversation b", "namespace": "two",
            "created_at": tick(1).to_string(), "updated_at": tick(1).to_string(), "messages": 0,
        }])
    );
}

async fn the_unnamed_namespace_is_default(store: &dyn Store) {
    create(store, "a", "").await;
    store.set_current("", &conversation("a")).await.unwrap();
    assert_eq!(store.list(Scope::Namespace("default")).await.unwrap().len(), 1);
    assert_eq!(store.list(Scope::Namespace("")).await.unwrap().len(), 1);
    assert_eq!(store.current("default").await.unwrap(), Some(conversation("a")));
}

async fn find_takes_an_id_a_prefix_or_a_name(store: &dyn Store) {
    for (id, name, namespace) in
        [("abc1", "first", "one"), ("abc2", "second", "one"), ("abc", "abc2", "two"), ("100%", "短い", "one")]
    {
        store.create(NewConversation::new(conversation(id), namespace).named(name)).await.unwrap();
    }
    let one = async |text: &str, scope| match store.find(text, scope).await.unwrap() {
        Found::One(found) => found.id.to_string(),
        Found::Nothing => "nothing".into(),
        Found::Several(found) => format!("{} candidates", found.len()),
    };
    let here = Scope::Namespace("one");
    assert_eq!(one("abc1", here).await, "abc1");
    assert_eq!(one("abc2", Scope::Everywhere).await, "abc2", "an exact id wins over a name");
    assert_eq!(one("abc", here).await, "abc", "an exact id counts in every namespace");
    assert_eq!(one("ab", here).await, "2 candidates");
    assert_eq!(one("ab", Scope::Everywhere).await, "3 candidates");
    assert_eq!(one("ab", Scope::Namespace("two")).await, "abc");
    assert_eq!(one("second", here).await, "abc2");
    assert_eq!(one("sec", here).await, "nothing", "a name counts only whole");
    assert_eq!(one("短い", here).await, "100%");
    assert_eq!(one("10", here).await, "100%");
    assert_eq!(one("1%", here).await, "nothing", "no character is a wildcard");
    assert_eq!(one("", here).await, "nothing");
}

async fn each_namespace_has_its_current_conversation(store: &dyn Store) {
    create(store, "a", "one").await;
    create(store, "b", "one").await;
    store.set_current("one", &conversation("a")).await.unwrap();
    store.set_current("two", &conversation("b")).await.unwrap();
    store.set_current("one", &conversation("b")).await.unwrap();
    assert_eq!(store.current("one").await.unwrap(), Some(conversation("b")));
    assert_eq!(store.current("two").await.unwrap(), Some(conversation("b")));
    assert_eq!(store.current("three").await.unwrap(), None);
    let at_once = NewConversation { make_current: true, ..NewConversation::new(conversation("c"), "three") };
    store.create(at_once).await.unwrap();
    assert_eq!(store.current("three").await.unwrap(), Some(conversation("c")));
}

async fn facts_are_about_messages_that_exist(store: &dyn Store) {
    create(store, "a", "p").await;
    let a = conversation("a");
    store.append(&a, &user(1, "one")).await.unwrap();
    let before = store.get(&a).await.unwrap();
    let facts = [
        Fact::ToolStarted { message_id: id(1), call_id: "call_1".into() },
        Fact::ToolStarted { message_id: id(1), call_id: "call_2".into() },
        Fact::TurnEnded { message_id: id(1), outcome: Outcome::Waiting },
    ];
    for fact in &facts {
        store.note(&a, fact.clone()).await.unwrap();
    }
    assert_eq!(store.facts(&a).await.unwrap(), facts);
    assert_eq!(store.get(&a).await.unwrap(), before);

    for unknown in [id(2), "00000001-1111-4000-8000-000000000000".parse().unwrap()] {
        let fact = Fact::ToolStarted { message_id: unknown, call_id: "call_1".into() };
        let error = store.note(&a, fact).await.unwrap_err();
        assert!(matches!(error, StoreError::UnknownMessage { message, .. } if message == unknown), "{error:?}");
    }
    assert_eq!(store.facts(&a).await.unwrap(), facts);
}

async fn states_replace_each_other(store: &dyn Store) {
    create(store, "a", "p").await;
    create(store, "b", "p").await;
    let a = conversation("a");
    store.set_state(&a, "todo", json!([{"z": 1, "a": 2}])).await.unwrap();
    store.set_state(&a, "marks", json!("other")).await.unwrap();
    store.set_state(&conversation("b"), "todo", json!(null)).await.unwrap();
    assert_eq!(store.state(&a, "todo").await.unwrap().unwrap().to_string(), r#"[{"z":1,"a":2}]"#);
    store.set_state(&a, "todo", json!([])).await.unwrap();
    assert_eq!(store.state(&a, "todo").await.unwrap(), Some(json!([])));
    assert_eq!(store.state(&a, "marks").await.unwrap(), Some(json!("other")));
    assert_eq!(store.state(&conversation("b"), "todo").await.unwrap(), Some(json!(null)));
    assert_eq!(store.state(&a, "unknown").await.unwrap(), None);
}

async fn a_project_keeps_states_beside_its_conversations(store: &dyn Store) {
    assert_eq!(store.project_state("p", "notes").await.unwrap(), None);
    // No conversation is needed, and one of the same name shares nothing.
    store.set_project_state("p", "notes", json!([{"z": 1, "a": 2}])).await.unwrap();
    store.set_project_state("q", "notes", json!("other")).await.unwrap();
    create(store, "p", "p").await;
    assert_eq!(store.state(&conversation("p"), "notes").await.unwrap(), None);
    assert_eq!(store.project_state("p", "notes").await.unwrap().unwrap().to_string(), r#"[{"z":1,"a":2}]"#);
    store.set_project_state("p", "notes", json!([])).await.unwrap();
    assert_eq!(store.project_state("p", "notes").await.unwrap(), Some(json!([])));
    assert_eq!(store.project_state("q", "notes").await.unwrap(), Some(json!("other")));
    assert_eq!(store.project_state("p", "other").await.unwrap(), None);
    store.set_project_state("", "notes", json!(1)).await.unwrap();
    assert_eq!(store.project_state("default", "notes").await.unwrap(), Some(json!(1)));
}

async fn a_swap_never_undoes_what_another_wrote(store: &dyn Store) {
    let swap = async |before: Option<&serde_json::Value>, value| {
        store.swap_project_state("p", "notes", before, value).await.unwrap()
    };
    assert_eq!(swap(Some(&json!([])), json!([1])).await, Swap::Overtaken);
    assert_eq!(store.project_state("p", "notes").await.unwrap(), None);
    assert_eq!(swap(None, json!([1])).await, Swap::Done);
    assert_eq!(swap(None, json!([2])).await, Swap::Overtaken);
    assert_eq!(swap(Some(&json!([1])), json!([1, 2])).await, Swap::Done);
    assert_eq!(store.project_state("p", "notes").await.unwrap(), Some(json!([1, 2])));
}

async fn an_export_is_the_documented_json(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("a"), "p").named("name");
    new.description = "why".into();
    new.metadata.insert("k".into(), json!(1));
    store.create(new).await.unwrap();
    store.append(&conversation("a"), &user(1, "hello")).await.unwrap();
    let document = store.export(&conversation("a")).await.unwrap().unwrap();
    let text = serde_json::to_string(&document).unwrap();
    assert_eq!(
        text,
        format!(
            concat!(
                r#"{{"id":"a","name":"name","description":"why","created_at":"{}","updated_at":"{}","metadata":{{"k":1}},"#,
                r#""messages":[{{"message_id":"00000001-0000-4000-8000-000000000000","role":"user","content":"hello","#,
                r#""created_at":"{}","metadata":{{}},"llm_metadata":null}}]}}"#
            ),
            tick(0),
            tick(1),
            tick(1)
        )
    );
    assert_eq!(serde_json::from_str::<haft_store::ConversationDocument>(&text).unwrap(), document);
}

async fn requests_are_made_whole_again(store: &dyn Store) {
    create(store, "a", "p").await;
    create(store, "b", "p").await;
    let a = conversation("a");
    let system = Message::text(id(0xff), Role::System, "You are haft.", tick(0));
    let other_system = Message::text(id(0xfe), Role::System, "You are another.", tick(0));
    let messages: Vec<_> = (1..=4).map(|n| user(n, &format!("message {n}"))).collect();
    for message in &messages {
        store.append(&a, message).await.unwrap();
    }
    let [one, two, three, four] = messages.as_slice() else { unreachable!() };
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
    let log = store.requests(&a).await.unwrap();
    assert_eq!(log.iter().map(|line| line.kept).collect::<Vec<_>>(), [0, 2, 4, 0, 2, 2]);
    assert_eq!(log.iter().map(|line| line.segments).collect::<Vec<_>>(), [2, 4, 5, 3, 2, 2]);
    assert_eq!(log.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    for (number, request) in (1..).zip(&all) {
        assert_logged(store, "a", number, request).await;
        // Here none of the messages are stored: all of them came from the engine.
        assert_logged(store, "b", number, request).await;
    }
    for beyond in [0, 7, u64::MAX] {
        assert_eq!(store.request(&a, beyond).await.unwrap(), None);
    }
}

async fn a_changed_message_is_logged_as_it_was_sent(store: &dyn Store) {
    create(store, "a", "p").await;
    let whole = user(1, "a long text");
    store.append(&conversation("a"), &whole).await.unwrap();
    let cleared = user(1, "[cleared]");
    let first = sent(&[&user(9, "system"), &whole]);
    let second = sent(&[&user(9, "system"), &cleared]);
    assert_eq!(store.log_request(&conversation("a"), first.clone()).await.unwrap(), 1);
    assert_eq!(store.log_request(&conversation("a"), second.clone()).await.unwrap(), 2);
    assert_logged(store, "a", 1, &first).await;
    assert_logged(store, "a", 2, &second).await;
    assert_eq!(store.messages(&conversation("a")).await.unwrap(), [whole]);
}

async fn a_failed_write_nobody_waited_for_is_told_by_flush(store: &dyn Store) {
    store.flush().await.unwrap();
    drop(store.log_request(&conversation("nobody"), sent(&[&user(1, "one")])));
    let error = store.flush().await.unwrap_err();
    assert!(matches!(error, StoreError::UnknownConversation { .. }), "{error:?}");
    store.flush().await.unwrap();
}

async fn a_dropped_append_still_happens(store: &dyn Store) {
    create(store, "a", "p").await;
    let a = conversation("a");
    let message = user(1, "one");
    {
        let mut append = store.append(&a, &message);
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(append.as_mut().poll(context))).await;
        // Usually still under way; when it was faster than the look, it is durable already.
        assert!(polled.is_pending() || matches!(polled, std::task::Poll::Ready(Ok(()))));
    }
    store.flush().await.unwrap();
    assert_eq!(store.messages(&a).await.unwrap(), [message]);
}
