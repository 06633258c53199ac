//! Full-text search.

use haft_types::{Envelope, Message, Part, Role, Thinking, ToolCall, ToolResult};

use super::create;
use super::values::{conversation, id, tick, user};
use crate::{
    ConversationScope, NewConversation, NewFork, Revision, SearchHit, SearchQuery, Store,
    StoreError,
};

async fn search(store: &dyn Store, text: &str) -> Vec<SearchHit> {
    search_in(store, text, ConversationScope::Everywhere).await
}

async fn search_in(store: &dyn Store, text: &str, scope: ConversationScope<'_>) -> Vec<SearchHit> {
    store
        .search(SearchQuery {
            text,
            scope,
            limit: 20,
        })
        .await
        .unwrap()
}

/// Returns each hit as `conversation/message number`, sorted.
fn hit_places(hits: &[SearchHit]) -> Vec<String> {
    let mut places: Vec<String> = hits
        .iter()
        .map(|hit| {
            let message = hit
                .message
                .as_ref()
                .map_or(0, |message| message.message_id.short_id().0);
            format!("{}/{message}", hit.conversation.id)
        })
        .collect();
    places.sort();
    places
}

async fn append_text(store: &dyn Store, name: &str, n: u32, text: &str) {
    store
        .append_message(&conversation(name), &user(n, text))
        .await
        .unwrap();
}

pub(crate) async fn search_finds_words_in_messages(store: &dyn Store) {
    create(store, "a", "p").await;
    create(store, "b", "q").await;
    append_text(store, "a", 1, "Why does the Login test fail?").await;
    append_text(store, "a", 2, "The password is checked twice.").await;
    append_text(
        store,
        "b",
        3,
        "Login works; see `check_password()` in auth/loginForm.ts",
    )
    .await;
    assert_eq!(hit_places(&search(store, "login").await), ["a/1", "b/3"]);
    assert_eq!(hit_places(&search(store, "LOGIN test").await), ["a/1"]);
    assert_eq!(
        hit_places(&search(store, "test login").await),
        ["a/1"],
        "in any order"
    );
    assert_eq!(hit_places(&search(store, "\"login test\"").await), ["a/1"]);
    assert_eq!(
        hit_places(&search(store, "\"test login\"").await),
        [""; 0],
        "quoted in this order only"
    );
    assert_eq!(hit_places(&search(store, "check_password").await), ["b/3"]);
    assert_eq!(
        hit_places(&search(store, "form").await),
        ["b/3"],
        "part of a name"
    );
    assert_eq!(hit_places(&search(store, "pass*").await), ["a/2", "b/3"]);
    assert_eq!(hit_places(&search(store, "pass").await), [""; 0]);
    assert_eq!(
        hit_places(&search_in(store, "login", ConversationScope::Namespace("q")).await),
        ["b/3"]
    );
    let hits = search(store, "twice").await;
    assert_eq!(
        hits[0].snippet.with_highlights("[", "]"),
        "The password is checked [twice]."
    );
    assert_eq!(hits[0].conversation.name, "Conversation a");
    // Messages appended after a search are found, too.
    append_text(store, "a", 4, "one more Login").await;
    assert_eq!(
        hit_places(&search(store, "login").await),
        ["a/1", "a/4", "b/3"]
    );
    let most = store
        .search(SearchQuery {
            text: "login",
            scope: ConversationScope::Everywhere,
            limit: 2,
        })
        .await
        .unwrap();
    assert_eq!(most.len(), 2);
}

pub(crate) async fn search_finds_chinese_without_spaces(store: &dyn Store) {
    create(store, "a", "p").await;
    append_text(store, "a", 1, "请运行测试，然后提交代码。").await;
    append_text(store, "a", 2, "登录测试失败了").await;
    append_text(store, "a", 3, "テストを実行して 테스트").await;
    assert_eq!(hit_places(&search(store, "测试").await), ["a/1", "a/2"]);
    assert_eq!(hit_places(&search(store, "提交代码").await), ["a/1"]);
    assert_eq!(hit_places(&search(store, "运行测试").await), ["a/1"]);
    assert_eq!(hit_places(&search(store, "测试运行").await), [""; 0]);
    assert_eq!(
        hit_places(&search(store, "码").await),
        ["a/1"],
        "one character, at the end of a sentence"
    );
    assert_eq!(hit_places(&search(store, "败").await), ["a/2"]);
    assert_eq!(hit_places(&search(store, "テスト").await), ["a/3"]);
    assert_eq!(hit_places(&search(store, "테스트").await), ["a/3"]);
    assert_eq!(
        search(store, "登录").await[0]
            .snippet
            .with_highlights("[", "]"),
        "[登录]测试失败了"
    );
}

pub(crate) async fn search_finds_calls_and_results_but_not_reasoning(store: &dyn Store) {
    create(store, "a", "p").await;
    let call = ToolCall {
        id: "c".into(),
        name: "execute_command".into(),
        arguments: r#"{"command":"cargo nextest"}"#.into(),
        signature: None,
    };
    let thinking = Thinking {
        text: "secretly pondering".into(),
        ..Thinking::default()
    };
    let parts = vec![
        Part::Thinking(thinking),
        Part::from_text("Running."),
        Part::ToolCall(call),
    ];
    let result = ToolResult {
        tool_call_id: "c".into(),
        name: "execute_command".into(),
        envelope: Envelope::success("42 tests passed"),
    };
    let messages = [
        Message::new(id(1), Role::Assistant, parts, tick(1)),
        Message::new(
            id(2),
            Role::Tool,
            vec![Part::ToolResult(Box::new(result))],
            tick(2),
        ),
    ];
    for message in &messages {
        store
            .append_message(&conversation("a"), message)
            .await
            .unwrap();
    }
    assert_eq!(hit_places(&search(store, "nextest").await), ["a/1"]);
    assert_eq!(hit_places(&search(store, "execute_command").await), ["a/1"]);
    assert_eq!(hit_places(&search(store, "tests passed").await), ["a/2"]);
    assert_eq!(hit_places(&search(store, "pondering").await), [""; 0]);
}

pub(crate) async fn search_ranks_names_and_descriptions_first(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("a"), "p").with_name("Release checklist");
    new.description = "for 登录 builds".into();
    store.create(new).await.unwrap();
    create(store, "b", "p").await;
    append_text(store, "b", 1, "the release is near").await;
    let hits = search(store, "release").await;
    assert_eq!(
        hits.iter()
            .map(|hit| hit.conversation.id.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(
        hits[0].snippet.with_highlights("[", "]"),
        "[Release] checklist: for 登录 builds"
    );
    assert_eq!(hit_places(&search(store, "release builds").await), ["a/0"]);
    assert_eq!(hit_places(&search(store, "登录").await), ["a/0"]);
}

pub(crate) async fn search_follows_revisions_forks_and_the_trash(store: &dyn Store) {
    create(store, "a", "p").await;
    append_text(store, "a", 1, "an apple").await;
    append_text(store, "a", 2, "a pear").await;
    store
        .fork(&conversation("a"), NewFork::new(conversation("b")))
        .await
        .unwrap();
    assert_eq!(
        hit_places(&search(store, "apple").await),
        ["a/1"],
        "what is shared is found once"
    );

    let content = Some(vec![Part::from_text("a cherry")]);
    store
        .revise_message(
            &conversation("a"),
            id(2),
            Revision {
                content,
                ..Revision::default()
            },
        )
        .await
        .unwrap();
    assert_eq!(hit_places(&search(store, "cherry").await), ["a/2"]);

    store.delete(&conversation("a")).await.unwrap();
    assert_eq!(
        hit_places(&search(store, "apple").await),
        ["b/1"],
        "the fork still has it"
    );
    assert_eq!(hit_places(&search(store, "cherry").await), [""; 0]);
    assert_eq!(
        hit_places(&search_in(store, "cherry", ConversationScope::Trash).await),
        ["a/2"]
    );
    store.restore(&conversation("a")).await.unwrap();
    assert_eq!(hit_places(&search(store, "apple").await), ["a/1"]);
}

pub(crate) async fn search_without_words_is_an_error(store: &dyn Store) {
    for text in ["", "  ", "!? \"\" *", "()"] {
        let error = store
            .search(SearchQuery {
                text,
                scope: ConversationScope::Everywhere,
                limit: 5,
            })
            .await
            .unwrap_err();
        assert!(
            matches!(&error, StoreError::EmptySearch { text: told } if told == text),
            "{error:?}"
        );
    }
    create(store, "a", "p").await;
    append_text(store, "a", 1, "a AND b OR NOT c: NEAR(d)").await;
    for text in [
        "AND",
        "NOT",
        "a:b",
        "NEAR(d)",
        "c*",
        "\"unclosed",
        "^a",
        "-b",
        "'quoted'",
        "{a b}",
    ] {
        store
            .search(SearchQuery {
                text,
                scope: ConversationScope::Everywhere,
                limit: 5,
            })
            .await
            .unwrap();
    }
}
