//! A database shared with hostile users: text that looks like SQL, foreign functions and rows, and
//! locks held by others.

use haft_store::conformance::{conversation, user};
use haft_store::{ConversationScope, NewConversation, SearchQuery, Store, StoreError};
use haft_types::ConversationId;
use serde_json::json;

use crate::server::Server;

/// Texts from known attacks.
const ATTACKS: [&str; 10] = [
    "'; DROP TABLE conversations; --",
    "\\'; DELETE FROM messages; --",
    "$1",
    "$$; DROP TABLE messages; $$",
    "x' OR '1'='1",
    "../../../etc/passwd",
    "%",
    "_",
    "public.conversations\"; --",
    "\u{1b}]0;owned\u{7}\u{202e}",
];

fn query_everywhere(text: &str) -> SearchQuery<'_> {
    SearchQuery {
        text,
        scope: ConversationScope::Everywhere,
        limit: 100,
    }
}

#[tokio::test]
async fn postgres_store_never_executes_text_as_sql() {
    let Some(server) = Server::new().await else {
        return;
    };
    let store = server.connect();
    for (number, attack) in (0_u32..).zip(ATTACKS) {
        let id = ConversationId::new(attack);
        let new = NewConversation {
            name: Some(attack.to_owned()),
            ..NewConversation::new(id.clone(), attack)
        };
        if attack.contains(char::is_control) {
            let refused = store.create(new).await.unwrap_err();
            assert!(
                matches!(refused, StoreError::InvalidId { .. }),
                "{refused:?}"
            );
            continue;
        }
        store.create(new).await.unwrap();
        store
            .append_message(&id, &user(number, attack))
            .await
            .unwrap();
        store.set_state(&id, attack, json!(attack)).await.unwrap();
        store
            .set_project_state(attack, attack, json!(attack))
            .await
            .unwrap();
        store.set_current_conversation(attack, &id).await.unwrap();
        drop(store.lock(&id).await.unwrap());
        // A query without words is rejected; any other query succeeds, with or without hits.
        let _ = store.search(query_everywhere(attack)).await;
        store
            .find_conversation(attack, ConversationScope::Namespace(attack))
            .await
            .unwrap();
        assert_eq!(store.state(&id, attack).await.unwrap(), Some(json!(attack)));
        assert_eq!(
            store.project_state(attack, attack).await.unwrap(),
            Some(json!(attack))
        );
        assert_eq!(
            store.current_conversation(attack).await.unwrap(),
            Some(id.clone())
        );
        assert_eq!(store.messages(&id).await.unwrap().len(), 1, "{attack}");
        let listed = store
            .list(ConversationScope::Namespace(attack))
            .await
            .unwrap();
        assert_eq!(listed.len(), 1, "a namespace is exactly that one: {attack}");
    }
    assert_eq!(
        store
            .list(ConversationScope::Everywhere)
            .await
            .unwrap()
            .len(),
        ATTACKS.len() - 1
    );
    drop(store);
    server.end().await;
}

/// Functions and operators that would match the statements better than the server's own, if the
/// statements left types unspecified.
const BETTER_FITS: &str = "
    CREATE TABLE caught (what TEXT);
    CREATE FUNCTION catch_all(what TEXT) RETURNS BIGINT LANGUAGE plpgsql AS $f$
        BEGIN INSERT INTO caught VALUES (what); RETURN 7; END $f$;
    CREATE FUNCTION joined(name, name) RETURNS TEXT LANGUAGE sql AS $f$ SELECT catch_all('name||name')::text $f$;
    CREATE FUNCTION joined(name, text) RETURNS TEXT LANGUAGE sql AS $f$ SELECT catch_all('name||text')::text $f$;
    CREATE OPERATOR || (leftarg = name, rightarg = name, function = joined);
    CREATE OPERATOR || (leftarg = name, rightarg = text, function = joined);
    CREATE FUNCTION hashtextextended(text, integer) RETURNS BIGINT LANGUAGE sql AS $f$ SELECT catch_all('hash') $f$;
    CREATE FUNCTION hashtextextended(name, integer) RETURNS BIGINT LANGUAGE sql AS $f$ SELECT catch_all('hash') $f$;
    CREATE FUNCTION length(varchar) RETURNS INTEGER LANGUAGE sql AS $f$ SELECT catch_all('length')::int $f$;
    CREATE FUNCTION abs(text) RETURNS BIGINT LANGUAGE sql AS $f$ SELECT catch_all('abs') $f$;
    CREATE FUNCTION ts_rank(tsvector, text) RETURNS REAL LANGUAGE sql AS $f$ SELECT catch_all('rank')::real $f$;
    CREATE FUNCTION current_schema(integer) RETURNS name LANGUAGE sql AS $f$ SELECT catch_all('schema')::text::name $f$;
";

#[tokio::test]
async fn postgres_store_does_not_call_foreign_functions() {
    let Some(server) = Server::new().await else {
        return;
    };
    server.change(BETTER_FITS).await;
    let store = server.connect();
    let a = conversation("a");
    store
        .create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap();
    let lock = store.lock(&a).await.unwrap();
    store
        .append_message(&a, &user(1, "some words"))
        .await
        .unwrap();
    drop(lock);
    drop(store.lock(&a).await.unwrap());
    store
        .append_message(&a, &user(2, "more words"))
        .await
        .unwrap();
    assert_eq!(
        store.search(query_everywhere("words")).await.unwrap().len(),
        2
    );
    store
        .find_conversation("a", ConversationScope::Everywhere)
        .await
        .unwrap();
    store.namespaces().await.unwrap();
    store.totals().await.unwrap();
    assert_eq!(
        server.texts("SELECT what FROM caught").await,
        Vec::<String>::new()
    );
    drop(store);
    server.end().await;
}

#[tokio::test]
async fn postgres_store_reports_foreign_rows_as_errors() {
    let Some(server) = Server::new().await else {
        return;
    };
    let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
    for change in [
        "UPDATE conversations SET created_at = 'yesterday'",
        "UPDATE conversations SET updated_at = E'\\x1b[2J', name = E'\\x1b]0;owned\\x07'",
        "UPDATE conversations SET metadata = '{'",
        "UPDATE conversations SET messages = -5, revisions = -1",
        "UPDATE conversations SET messages = 9223372036854775807",
        "UPDATE messages SET body = ''",
        "UPDATE messages SET body = 'null'",
        "UPDATE messages SET body = '{\"role\": \"system\", \"parts\": 7}'",
        "UPDATE messages SET position = 9223372036854775807",
        "UPDATE messages SET message_id = E'\\x1b[2J'",
        "UPDATE lineage SET last_position = -1, source = conversation",
        "INSERT INTO lineage SELECT conversation, step + 1, source, last_position, last_revision, last_fact FROM lineage",
        "UPDATE states SET value = 'x'",
        "DELETE FROM haft_format",
        "INSERT INTO unindexed VALUES (-9223372036854775807), (9223372036854775807)",
        "ALTER TABLE messages ALTER COLUMN body TYPE BYTEA USING convert_to(body, 'UTF8')",
        "ALTER TABLE conversations DROP COLUMN description",
        "DROP TABLE entries",
        &format!("UPDATE messages SET body = '{deep}'"),
        &format!("UPDATE states SET value = '{deep}'"),
    ] {
        let store = server.connect();
        let a = conversation("a");
        store
            .create(NewConversation::new(a.clone(), "p"))
            .await
            .unwrap();
        store
            .append_message(&a, &user(1, "some words"))
            .await
            .unwrap();
        store.set_state(&a, "s", json!(1)).await.unwrap();
        server.change(change).await;
        // Every result is accepted except a panic or an impossible value.
        let _ = store.list(ConversationScope::Everywhere).await;
        let _ = store.get(&a).await;
        let _ = store.messages(&a).await;
        let _ = store.state(&a, "s").await;
        let _ = store.facts(&a).await;
        let _ = store.logged_requests(&a).await;
        let _ = store.request_outlines(&a).await;
        let _ = store.logged_request(&a, 1).await;
        let _ = store.search(query_everywhere("words")).await;
        let _ = store.namespaces().await;
        let _ = store.totals().await;
        let _ = store.export(&a).await;
        let _ = store.append_message(&a, &user(2, "more")).await;
        let _ = store
            .find_conversation("a", ConversationScope::Everywhere)
            .await;
        drop(store);
        server.empty().await;
    }
    server.end().await;
}

#[tokio::test]
async fn postgres_schemas_of_one_database_are_independent() {
    let (Some(here), Some(there)) = (Server::new().await, Server::new().await) else {
        return;
    };
    let one = here.connect();
    let other = there.connect();
    let a = conversation("a");
    one.create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap();
    other
        .create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap();
    let _one = one.lock(&a).await.unwrap();
    let _other = other.lock(&a).await.unwrap();
    one.append_message(&a, &user(1, "mine alone"))
        .await
        .unwrap();
    assert_eq!(other.messages(&a).await.unwrap().len(), 0);
    assert_eq!(
        other.search(query_everywhere("mine")).await.unwrap().len(),
        0
    );
    drop((one, other));
    here.end().await;
    there.end().await;
}

#[tokio::test]
async fn postgres_lock_held_by_another_client_times_out() {
    let Some(server) = Server::new().await else {
        return;
    };
    let store = server.connect();
    let a = conversation("a");
    store
        .create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap();
    let holding = server
        .hold("SELECT pg_advisory_lock(hashtextextended(current_schema()::text || ' conversation a'::text, 0::bigint))")
        .await;
    let loud = json!({"pid": 1, "host": "\u{1b}]0;owned\u{7}\u{202e}".to_owned() + &"h".repeat(100_000), "since": "2026-01-01T00:00:00Z"});
    for holder in [loud.to_string(), "not json".to_owned(), String::new()] {
        server
            .change(&format!(
                "DELETE FROM writers; INSERT INTO writers VALUES ('a', '{holder}')"
            ))
            .await;
        let error = store.lock(&a).await.unwrap_err();
        assert!(matches!(error, StoreError::LockTimeout { .. }), "{error:?}");
        let told = error.to_string();
        assert!(
            told.len() < 1_000 && !told.contains(['\u{1b}', '\u{7}', '\u{202e}']),
            "{told}"
        );
        store
            .append_message(&a, &user(1, "not now"))
            .await
            .unwrap_err();
    }
    drop(holding);
    drop(store);
    server.end().await;
}
