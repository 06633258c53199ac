//! Measures a team's store with many conversations: one user's operations should cost no more than
//! in a small store.

use std::time::{Duration, Instant};

use haft_postgres::PostgresStore;
use haft_store::conformance::{conversation, user};
use haft_store::{ConversationScope, NewConversation, SearchQuery, Store};

use crate::server::Server;

/// Number of conversations of each project.
const EACH: u32 = 100;

/// Creates a store with `projects` projects, whose conversations differ in one word. The server
/// copies the rows, because creating a hundred thousand conversations one by one takes hours.
async fn fill_store(server: &Server, projects: u32) -> PostgresStore {
    let store = server.connect();
    let first = conversation("first");
    store
        .create(NewConversation::new(first.clone(), "project 0"))
        .await
        .unwrap();
    for n in 0..4 {
        store
            .append_message(&first, &user(n, &format!("the login page of step {n}")))
            .await
            .unwrap();
    }
    assert_eq!(
        count_hits(&store, "login", ConversationScope::Everywhere).await,
        4
    );
    let copies = projects * EACH;
    server
        .change(&format!(
            "INSERT INTO conversations (id, namespace, name, description, metadata, created_at, updated_at, messages)
                 SELECT 'copy-' || n, 'project ' || n / {EACH}, 'Conversation ' || n, description, metadata, created_at, updated_at, messages
                 FROM conversations, generate_series(1, {copies} - 1) AS n WHERE id = 'first';
             INSERT INTO lineage SELECT c.key, step, c.key, last_position, last_revision, last_fact
                 FROM conversations c, lineage WHERE c.id LIKE 'copy-%' AND conversation = 1;
             INSERT INTO messages (conversation, position, short_id, message_id, role, hash, body)
                 SELECT c.key, position, short_id, message_id, role, hash, body
                 FROM conversations c, messages WHERE c.id LIKE 'copy-%' AND conversation = 1;
             INSERT INTO current_conversations SELECT namespace, max(key) FROM conversations GROUP BY namespace
                 ON CONFLICT (namespace) DO UPDATE SET conversation = excluded.conversation;
             INSERT INTO unindexed SELECT key FROM messages WHERE conversation <> 1;
             INSERT INTO unnamed SELECT key FROM conversations ON CONFLICT DO NOTHING;"
        ))
        .await;
    store
        .append_message(&first, &user(9, "a needle"))
        .await
        .unwrap();
    // The first search indexes the new messages.
    assert_eq!(
        count_hits(&store, "needle", ConversationScope::Everywhere).await,
        1
    );
    server.change("VACUUM ANALYZE").await;
    store
}

async fn count_hits(store: &PostgresStore, text: &str, scope: ConversationScope<'_>) -> usize {
    store
        .search(SearchQuery {
            text,
            scope,
            limit: 20,
        })
        .await
        .unwrap()
        .len()
}

/// Returns the shortest of several runs, because other programs use the machine, too.
async fn shortest_run(mut job: impl AsyncFnMut()) -> Duration {
    let mut shortest = Duration::MAX;
    for _ in 0..7 {
        let started = Instant::now();
        job().await;
        shortest = shortest.min(started.elapsed());
    }
    shortest
}

/// Measures the operations of a user of one project.
async fn measure(store: &PostgresStore) -> [(&'static str, Duration); 6] {
    let own = ConversationScope::Namespace("project 0");
    let all = ConversationScope::Everywhere;
    let list =
        shortest_run(async || assert_eq!(store.list(own).await.unwrap().len(), EACH as usize))
            .await;
    let resume = shortest_run(async || {
        let id = store
            .current_conversation("project 0")
            .await
            .unwrap()
            .unwrap();
        let lock = store.lock(&id).await.unwrap();
        assert_eq!(store.messages(&id).await.unwrap().len(), 4);
        drop(lock);
    });
    [
        ("list a project", list),
        ("resume its conversation", resume.await),
        (
            "search a word all have, in a project",
            shortest_run(async || assert_eq!(count_hits(store, "login", own).await, 20)).await,
        ),
        (
            "search a word one has, everywhere",
            shortest_run(async || assert_eq!(count_hits(store, "needle", all).await, 1)).await,
        ),
        (
            "find by the beginning of an id",
            shortest_run(async || drop(store.find_conversation("firs", all).await.unwrap())).await,
        ),
        (
            "find by name",
            shortest_run(async || {
                drop(
                    store
                        .find_conversation("Conversation 17", all)
                        .await
                        .unwrap(),
                );
            })
            .await,
        ),
    ]
}

#[tokio::test]
#[ignore = "a measurement, run by hand"]
async fn measure_a_large_store() {
    let Some(small) = Server::with_database().await else {
        return;
    };
    let large = Server::with_database().await.unwrap();
    let stores = (
        fill_store(&small, 10).await,
        fill_store(&large, 1_000).await,
    );
    for ((what, few), (_, many)) in measure(&stores.0)
        .await
        .into_iter()
        .zip(measure(&stores.1).await)
    {
        let times = many.as_secs_f64() / few.as_secs_f64();
        println!(
            "{what}: {few:.2?} with 1,000 conversations, {many:.2?} with 100,000: {times:.1} times (goal 2)"
        );
    }
    drop(stores);
    small.end().await;
    large.end().await;
}
