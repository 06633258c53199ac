//! Export and import.

use serde_json::json;

use super::values::{conversation, tick, user};
use crate::{ConversationDocument, Imported, NewConversation, Store, StoreError};

pub(crate) async fn export_is_the_documented_json(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("a"), "p").with_name("name");
    new.description = "why".into();
    new.metadata.insert("k".into(), json!(1));
    store.create(new).await.unwrap();
    store
        .append_message(&conversation("a"), &user(1, "hello"))
        .await
        .unwrap();
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
    assert_eq!(
        serde_json::from_str::<ConversationDocument>(&text).unwrap(),
        document
    );
}

pub(crate) async fn import_of_an_export_gives_an_equal_conversation(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("a"), "p").with_name("name");
    new.metadata.insert("k".into(), json!([1, "two"]));
    new.messages = vec![user(1, "hello"), user(2, "world")];
    store.create(new).await.unwrap();
    let mut document = store.export(&conversation("a")).await.unwrap().unwrap();
    let same = store.import(document.clone(), "p").await.unwrap();
    assert!(
        matches!(same, Imported::Same(conversation) if conversation.id.as_str() == "a"),
        "nothing to be done"
    );

    document.id = conversation("b");
    let imported = store.import(document.clone(), "q").await.unwrap();
    assert!(
        matches!(&imported, Imported::New(new) if new.namespace == "q" && new.messages == 2),
        "{imported:?}"
    );
    assert_eq!(
        store.export(&conversation("b")).await.unwrap().unwrap(),
        document,
        "with its times"
    );

    // After a rename and a new message here, importing again loses and duplicates nothing.
    store.rename(&conversation("b"), "another").await.unwrap();
    store
        .append_message(&conversation("b"), &user(3, "and on"))
        .await
        .unwrap();
    let same = store.import(document.clone(), "q").await.unwrap();
    assert!(
        matches!(&same, Imported::Same(found) if found.name == "another"),
        "{same:?}"
    );
    assert_eq!(store.messages(&conversation("b")).await.unwrap().len(), 3);
}

pub(crate) async fn import_of_a_longer_document_adds_its_new_messages(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("a"), "p");
    new.messages = vec![user(1, "one"), user(2, "two")];
    store.create(new).await.unwrap();
    let mut document = store.export(&conversation("a")).await.unwrap().unwrap();
    document
        .messages
        .extend([user(3, "three"), user(4, "four")]);
    let grown = store.import(document.clone(), "p").await.unwrap();
    assert!(
        matches!(&grown, Imported::Grown { conversation, added: 2 } if conversation.messages == 4),
        "{grown:?}"
    );
    assert_eq!(
        store.messages(&conversation("a")).await.unwrap(),
        document.messages
    );

    // A document with diverging messages becomes another conversation.
    document.messages[1] = user(2, "not two");
    let error = store.import(document.clone(), "p").await.unwrap_err();
    assert!(
        matches!(&error, StoreError::IdTaken { id } if id.as_str() == "a"),
        "{error:?}"
    );
    store.delete(&conversation("a")).await.unwrap();
    let error = store.import(document, "p").await.unwrap_err();
    assert!(
        matches!(error, StoreError::IdTaken { .. }),
        "also while it is in the trash: {error:?}"
    );
}

pub(crate) async fn import_refuses_a_document_with_a_repeated_message_id(store: &dyn Store) {
    let document = ConversationDocument {
        id: conversation("a"),
        name: "name".into(),
        description: String::new(),
        created_at: tick(5),
        updated_at: tick(6),
        metadata: serde_json::Map::new(),
        messages: vec![user(1, "hello"), user(1, "hello")],
    };
    let error = store.import(document, "p").await.unwrap_err();
    assert!(
        matches!(error, StoreError::MessageIdTaken { .. }),
        "{error:?}"
    );
    assert_eq!(store.get(&conversation("a")).await.unwrap(), None);
}
