use haft_store::{NewConversation, SqliteStore, StoreConfig};
use haft_testkit::test::FakeClock;
use serde_json::json;

use super::*;
use crate::stored_state::StateDocument;

fn store(folder: &Path) -> Arc<dyn Store> {
    let clock = Arc::new(FakeClock::default());
    Arc::new(
        SqliteStore::open(
            &folder.join("conversations.db"),
            &StoreConfig::default(),
            clock,
        )
        .unwrap(),
    )
}

fn new(path: &str, start_line: u32, end_line: u32) -> NewUseful {
    NewUseful {
        path: path.into(),
        start_line,
        end_line,
        description: "why".into(),
    }
}

#[tokio::test]
async fn ranges_survive_and_are_read_anew_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let id = ConversationId::new("a");
    {
        let store = store(&root);
        store
            .create(NewConversation::new(id.clone(), "p"))
            .await
            .unwrap();
        let useful = StoredUseful::open(store, id.clone()).await.unwrap();
        assert_eq!(useful.useful_reminder(&root), "");
        useful.add(new("a.rs", 1, 2)).await.unwrap();
        useful.add(new("b.rs", 1, 1)).await.unwrap();
    }
    let useful = StoredUseful::open(store(&root), id).await.unwrap();
    std::fs::write(root.join("a.rs"), "one\ntwo\nthree\n").unwrap();
    let reminder = useful.useful_reminder(&root);
    assert_eq!(
        reminder,
        "### `a.rs` lines 1-2: why\n\n```\none\ntwo\n```\n\n\
         ### `b.rs` lines 1-1: why\n\n(cannot be read now: the file does not exist)\n"
    );
    std::fs::write(root.join("a.rs"), "uno\n").unwrap();
    assert!(
        useful.useful_reminder(&root).contains("```\nuno\n```"),
        "as it is on disk now"
    );

    assert_eq!(useful.delete(2).await.unwrap().path, "b.rs");
    assert_eq!(
        useful.delete(2).await,
        Err(PortError::Unknown {
            what: "useful information",
            id: "2".into()
        })
    );
    assert_eq!(useful.ranges(), useful.list().await.unwrap());
    assert_eq!(useful.ranges().len(), 1);
}

#[tokio::test]
async fn the_newest_ranges_have_the_room() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let store = store(&root);
    store
        .create(NewConversation::new(ConversationId::new("a"), "p"))
        .await
        .unwrap();
    let useful = StoredUseful::open(store, ConversationId::new("a"))
        .await
        .unwrap();
    for name in ["old", "new"] {
        std::fs::write(root.join(name), format!("{name}\n").repeat(1_500)).unwrap();
        useful.add(new(name, 1, 1_500)).await.unwrap();
    }
    let reminder = useful.useful_reminder(&root);
    assert!(
        reminder.contains("lines 1-1500: why\n\n(cannot be read now: too long to be shown here"),
        "{reminder}"
    );
    assert!(reminder.contains("new\nnew\n") && !reminder.contains("old\nold\n"));
}

#[tokio::test]
async fn what_cannot_be_understood_is_told_and_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let id = ConversationId::new("a");
    store
        .create(NewConversation::new(id.clone(), "p"))
        .await
        .unwrap();
    let strange = json!({"items": "of another kind"});
    store
        .set_state(&id, UsefulRanges::KEY, strange.clone())
        .await
        .unwrap();
    let useful = StoredUseful::open(Arc::clone(&store), id.clone())
        .await
        .unwrap();
    assert_eq!(useful.ranges(), []);
    for error in [
        useful.list().await.unwrap_err(),
        useful.add(new("a", 1, 1)).await.unwrap_err(),
    ] {
        assert!(
            error.to_string().contains("`useful` cannot be understood"),
            "{error}"
        );
    }
    assert_eq!(
        store.state(&id, UsefulRanges::KEY).await.unwrap(),
        Some(strange)
    );
}
