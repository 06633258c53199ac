//! Images of a dialogue, and conversations that were started from others.

use std::sync::Arc;

use haft_store::{NewConversation, SqliteStore, Store, StoreConfig};
use haft_testkit::support::FakeClock;
use haft_testkit::{Reply, Script};
use haft_types::{Api, ConversationId, Image, Message, MessageId, Part, Role, Timestamp};
use serde_json::json;

use super::ServedPage;
use crate::rig::Rig;

/// The smallest possible image.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn sub_agent_conversation(
    id: &str,
    namespace: &str,
    from: &str,
    messages: Vec<Message>,
) -> NewConversation {
    NewConversation {
        id: ConversationId::new(id),
        name: Some(format!("finder: {id}")),
        namespace: namespace.to_owned(),
        metadata: [
            ("parent".to_owned(), json!(from)),
            ("agent".to_owned(), json!("finder")),
        ]
        .into_iter()
        .collect(),
        messages,
        description: String::new(),
        make_current: false,
        times: None,
    }
}

#[test]
fn conversation_page_shows_images_and_a_tree_of_sub_agents() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Done.")]).unwrap(),
    );
    assert_eq!(rig.run(&["run", "look around"]).code(), 0);
    let listed = rig.run(&["conversations", "list", "--json"]).json();
    let main = listed[0]["id"].as_str().unwrap();
    let clock = Arc::new(FakeClock::default());
    let store = SqliteStore::open(
        &rig.home().join("data/conversations.db"),
        &StoreConfig::default(),
        clock,
    )
    .unwrap();
    let image = |media_type: &str| {
        Part::Image(Image {
            media_type: media_type.to_owned(),
            data: DOT.to_owned(),
        })
    };
    let shown = MessageId::from_hash(haft_types::ContentHash::from_content(b"picture"));
    let message = Message::new(
        shown,
        Role::User,
        vec![image("image/png"), image("image/svg+xml")],
        Timestamp::UNIX_EPOCH,
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let agents = format!(
            "{}#agents",
            store
                .get(&ConversationId::new(main))
                .await
                .unwrap()
                .unwrap()
                .namespace
        );
        for (id, from, messages) in [
            ("first", main, vec![message]),
            ("below", "first", vec![]),
            ("other", "nobody", vec![]),
        ] {
            store
                .create(sub_agent_conversation(id, &agents, from, messages))
                .await
                .unwrap();
        }
        store.flush().await.unwrap();
    });

    let page = ServedPage::start(&rig);
    let html = page.get_page(&format!("/c/{main}"));
    let tree = html
        .split("Sub-agents")
        .nth(1)
        .unwrap_or_else(|| panic!("{html}"));
    let rows: Vec<_> = tree
        .split("<tr>")
        .skip(2)
        .map(|row| row.split("</tr>").next().unwrap())
        .collect();
    let row = |indent: &str, id: &str, messages: usize| {
        format!(
            "<th class=\"prose\" data-label=\"Name\" scope=\"row\">{indent}<a href=\"/c/{id}\">finder: {id}</a></th>\
             <td data-label=\"State\"><strong class=\"badge bad\">Stopped</strong></td>\
             <td class=\"num\" data-label=\"Messages\">{messages}</td>\
             <td class=\"num\" data-label=\"Cost\"></td><td class=\"num\" data-label=\"Time\">0 s</td>"
        )
    };
    assert_eq!(rows, [row("", "first", 1), row("\u{2003}", "below", 0)]);
    assert!(!tree.contains("finder: other"), "{tree}");
    let child = page.get_page("/c/first");
    assert!(
        child.contains(&format!(
            "<a href=\"/c/{main}\">Started from another conversation"
        )),
        "{child}"
    );
    assert!(
        child.contains("/c/first/edit"),
        "what a sub-agent sends is haft's own business"
    );
    let source = format!("/image/first/{shown}/0");
    assert!(child.contains(&format!("<img src=\"{source}\"")), "{child}");
    assert!(page.get_page(&source).contains("content-type: image/png"));
    assert!(page.get(&source, "").starts_with("HTTP/1.1 401 "));
    for missing in [
        format!("/image/first/{shown}/1"),
        format!("/image/first/{shown}/7"),
        "/image/first/x/0".to_owned(),
    ] {
        assert!(
            page.get_page(&missing).starts_with("HTTP/1.1 404 "),
            "{missing}"
        );
    }
}
