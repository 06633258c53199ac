use haft_store::{NewConversation, SqliteStore, StoreConfig};
use haft_testkit::support::FakeClock;
use serde_json::json;

use super::*;
use crate::testing::pinned;

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

fn new(path: &str, start_line: u32, end_line: u32) -> NewUsefulItem {
    NewUsefulItem {
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
        assert_eq!(useful.contents(&root), []);
        useful.add(new("a.rs", 1, 2)).await.unwrap();
        useful.add(new("b.rs", 1, 1)).await.unwrap();
    }
    let useful = StoredUseful::open(store(&root), id).await.unwrap();
    std::fs::write(root.join("a.rs"), "one\ntwo\nthree\n").unwrap();
    let shown = || -> Vec<(String, Result<String, String>)> {
        let contents = useful.contents(&root).into_iter();
        contents.map(|(item, lines)| (item.path, lines)).collect()
    };
    let missing = ("b.rs".into(), Err("the file does not exist".into()));
    assert_eq!(
        shown(),
        [("a.rs".into(), Ok("one\ntwo\n".into())), missing.clone()]
    );
    std::fs::write(root.join("a.rs"), "uno\n").unwrap();
    assert_eq!(
        shown(),
        [("a.rs".into(), Ok("uno\n".into())), missing],
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
async fn useful_ranges_beyond_the_limit_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let id = ConversationId::new("a");
    store
        .create(NewConversation::new(id.clone(), "p"))
        .await
        .unwrap();
    let useful = StoredUseful::open(store, id).await.unwrap();
    let useful = useful.with_max_ranges(1);
    assert!(
        useful
            .add(new("a.rs", 1, 2))
            .await
            .unwrap()
            .dropped
            .is_empty()
    );
    assert_eq!(useful.add(new("b.rs", 1, 1)).await.unwrap().dropped, [1]);
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
    let [(old, left_out), (new, shown)] = useful.contents(&root).try_into().unwrap();
    assert_eq!((old.path.as_str(), old.end_line), ("old", 1_500));
    let left_out = left_out.unwrap_err();
    assert!(
        left_out.starts_with("too long to be shown here"),
        "{left_out}"
    );
    assert_eq!(new.path, "new");
    let shown = shown.unwrap();
    assert!(shown.starts_with("new\nnew\n") && !shown.contains("old"));
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

#[test]
fn key_and_shape_are_what_earlier_versions_stored() {
    let range = UsefulItem {
        number: 4,
        path: "a.rs".into(),
        start_line: 1,
        end_line: 2,
        description: "why".into(),
    };
    assert_eq!(UsefulRanges::KEY, "useful");
    pinned(
        &UsefulRanges {
            last_number: 4,
            items: vec![range],
        },
        r#"{"last_number":4,"items":[{"number":4,"path":"a.rs","start_line":1,"end_line":2,"description":"why"}]}"#,
    );
}
