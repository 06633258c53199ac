//! Tests both protocol revisions over HTTP.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use haft_mcp::{AnswerContent, Elicitor, McpError, Protocol, ServerDefinition, ServerEndpoint};
use haft_testkit::support::{McpServer, Revision};
use haft_types::{FieldKind, Form, FormOutcome};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{Shown, arguments, block_on, http, nowhere, servers, servers_with_elicitor};

const BOTH: [Revision; 2] = [Revision::Current, Revision::Previous];

fn never() -> CancellationToken {
    CancellationToken::new()
}

#[test]
fn listing_arrives_whole_in_both_revisions() {
    for revision in BOTH {
        let state = tempfile::tempdir().unwrap();
        let there = McpServer::start(revision).unwrap();
        let all = servers(state.path(), vec![http("s", &there.url())]);
        let listing = block_on(all.current_listing("s", &never())).unwrap();
        let names: Vec<_> = listing
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "echo",
                "fail",
                "picture",
                "long",
                "structured",
                "slow",
                "stuck",
                "ask",
                "grow"
            ]
        );
        assert_eq!(listing.tools[0].description, "Says what it was told.");
        assert_eq!(
            listing.tools[0].schema["properties"]["text"]["type"],
            "string"
        );
        assert_eq!(
            (listing.instructions.as_str(), listing.program.as_str()),
            ("Be gentle.", "testkit 1")
        );
        let wanted = match revision {
            Revision::Current => "2026-07-28",
            Revision::Previous => "2025-11-25",
        };
        assert_eq!(listing.protocol, wanted);
        assert_eq!(listing.resources[0].uri, "mem:a");
        assert_eq!(
            (
                listing.prompts[0].name.as_str(),
                listing.prompts[0].arguments[0].required
            ),
            ("greet", true)
        );
    }
}

#[test]
fn protocol_setting_can_require_a_revision() {
    let state = tempfile::tempdir().unwrap();
    let there = McpServer::start(Revision::Previous).unwrap();
    let demanded = |protocol| {
        vec![ServerDefinition {
            protocol,
            ..http("s", &there.url())
        }]
    };
    let all = servers(state.path(), demanded(Protocol::Previous));
    block_on(all.current_listing("s", &never())).unwrap();
    assert!(
        !there.methods().contains(&"server/discover".to_owned()),
        "{:?}",
        there.methods()
    );
    let all = servers(state.path(), demanded(Protocol::Current));
    let error = block_on(all.refetch_listing("s", &never())).unwrap_err();
    assert_eq!(error.code(), "server_start", "{error}");
}

#[test]
fn call_returns_every_kind_of_answer() {
    for revision in BOTH {
        let state = tempfile::tempdir().unwrap();
        let there = McpServer::start(revision).unwrap();
        let all = servers(state.path(), vec![http("s", &there.url())]);
        block_on(async {
            let call = |tool: &'static str, given: Value| {
                let all = &all;
                async move {
                    all.call_tool("s", tool, arguments(given), nowhere(), &never())
                        .await
                        .unwrap()
                }
            };
            let echo = call("echo", json!({"text": "ü", "n": 1})).await;
            assert_eq!(echo.joined_text(), r#"{"text":"ü","n":1}"#);
            assert!(call("fail", json!({})).await.is_error);
            let picture = call("picture", json!({})).await;
            assert!(
                matches!(&picture.content[0], AnswerContent::Image(image) if image.media_type == "image/png")
            );
            assert_eq!(
                call("structured", json!({})).await.joined_text(),
                "{\n  \"answer\": 42\n}"
            );
            assert_eq!(
                all.read_resource("s", "mem:a", &never())
                    .await
                    .unwrap()
                    .joined_text(),
                "content of a"
            );
            let prompt = all
                .fill_prompt("s", "greet", arguments(json!({"whom": "me"})), &never())
                .await
                .unwrap();
            assert_eq!(prompt.joined_text(), "Hello \"me\".");
        });
    }
}

#[test]
fn progress_is_shown_to_the_waiting_call() {
    for revision in BOTH {
        let state = tempfile::tempdir().unwrap();
        let there = McpServer::start(revision).unwrap();
        let all = servers(state.path(), vec![http("s", &there.url())]);
        let shown = Arc::new(Shown::default());
        let cancel = never();
        block_on(async {
            // An answer may overtake earlier progress messages.
            while shown.0.lock().unwrap().is_empty() {
                let called =
                    all.call_tool("s", "slow", arguments(json!({})), shown.progress(), &cancel);
                assert_eq!(called.await.unwrap().joined_text(), "done at last");
            }
        });
        let shown = shown.0.lock().unwrap().clone();
        let known = [
            "s: working (1 of 3)",
            "s: working (2 of 3)",
            "s: working (3 of 3)",
        ];
        assert!(
            shown.iter().all(|line| known.contains(&line.as_str())),
            "{revision:?}: {shown:?}"
        );
    }
}

#[test]
fn call_cancel_notifies_the_server() {
    let state = tempfile::tempdir().unwrap();
    let there = McpServer::start(Revision::Previous).unwrap();
    let all = servers(state.path(), vec![http("s", &there.url())]);
    let cancel = CancellationToken::new();
    block_on(async {
        let stop = cancel.clone();
        let heard = tokio::task::spawn_blocking(move || {
            let call = there.wait_for_message(|message| message["params"]["name"] == "stuck");
            stop.cancel();
            let told =
                there.wait_for_message(|message| message["method"] == "notifications/cancelled");
            (call["id"].clone(), told["params"]["requestId"].clone())
        });
        let error = all
            .call_tool("s", "stuck", arguments(json!({})), nowhere(), &cancel)
            .await
            .unwrap_err();
        assert_eq!(error, McpError::Cancelled);
        let (called, cancelled) = heard.await.unwrap();
        assert_eq!(called, cancelled);
    });
}

#[test]
fn call_to_a_silent_server_times_out() {
    let state = tempfile::tempdir().unwrap();
    let there = McpServer::start(Revision::Previous).unwrap();
    let short = ServerDefinition {
        timeout: Duration::from_millis(300),
        ..http("s", &there.url())
    };
    let all = servers(state.path(), vec![short]);
    let error = block_on(all.call_tool("s", "stuck", arguments(json!({})), nowhere(), &never()))
        .unwrap_err();
    assert_eq!(error.code(), "timeout", "{error}");
}

#[test]
fn listing_is_requested_again_when_it_changes() {
    let state = tempfile::tempdir().unwrap();
    let there = McpServer::start(Revision::Previous).unwrap();
    let all = servers(state.path(), vec![http("s", &there.url())]);
    block_on(async {
        let unknown = all
            .call_tool("s", "grown", arguments(json!({})), nowhere(), &never())
            .await
            .unwrap_err();
        assert!(
            unknown.to_string().contains("it has `echo`, `fail`"),
            "{unknown}"
        );
        all.call_tool("s", "grow", arguments(json!({})), nowhere(), &never())
            .await
            .unwrap();
        all.call_tool("s", "grown", arguments(json!({})), nowhere(), &never())
            .await
            .unwrap();
        assert!(
            all.known_listing("s")
                .unwrap()
                .tools
                .iter()
                .any(|tool| tool.name == "grown")
        );
    });
}

/// Answers after the given time.
struct Somebody(Duration);

#[async_trait]
impl Elicitor for Somebody {
    async fn fill_form(&self, form: Form) -> FormOutcome {
        assert_eq!(
            (form.requester.as_str(), form.message.as_str()),
            ("the MCP server `s`", "Your name?")
        );
        assert_eq!(
            (form.fields.len(), &form.fields[0].kind),
            (1, &FieldKind::Text)
        );
        tokio::time::sleep(self.0).await;
        FormOutcome::Accepted(arguments(json!({"name": "Ada"})))
    }
}

#[test]
fn elicitation_is_declined_without_an_elicitor() {
    let state = tempfile::tempdir().unwrap();
    let there = McpServer::start(Revision::Previous).unwrap();
    let all = servers(state.path(), vec![http("s", &there.url())]);
    let declined =
        block_on(all.call_tool("s", "ask", arguments(json!({})), nowhere(), &never())).unwrap();
    assert_eq!(declined.joined_text(), r#"{"action":"decline"}"#);
    // On a busy machine the server itself may be silent for longer than a short timeout.
    let answered = [1, 8, 64].into_iter().find_map(|seconds| {
        let there = McpServer::start(Revision::Previous).unwrap();
        let timeout = Duration::from_secs(seconds);
        let impatient = ServerDefinition {
            timeout,
            ..http("s", &there.url())
        };
        // Longer than the timeout of the server.
        let somebody = Somebody(timeout + timeout / 2);
        let all = servers_with_elicitor(state.path(), vec![impatient], Arc::new(somebody));
        block_on(all.call_tool("s", "ask", arguments(json!({})), nowhere(), &never())).ok()
    });
    let answered = answered.expect("the time a person takes does not count");
    let answered: Value = serde_json::from_str(&answered.joined_text()).unwrap();
    assert_eq!(
        answered,
        json!({"action": "accept", "content": {"name": "Ada"}})
    );
}

/// An elicitor that must not be asked.
struct Unasked;

#[async_trait]
impl Elicitor for Unasked {
    async fn fill_form(&self, form: Form) -> FormOutcome {
        panic!("asked for {}", form.message)
    }
}

#[test]
fn question_on_a_web_page_is_declined() {
    let state = tempfile::tempdir().unwrap();
    let there = McpServer::start(Revision::Previous).unwrap();
    let all = servers_with_elicitor(
        state.path(),
        vec![http("s", &there.url())],
        Arc::new(Unasked),
    );
    let page = arguments(json!({"url": "https://example.com/form"}));
    let declined = block_on(all.call_tool("s", "ask", page, nowhere(), &never())).unwrap();
    assert_eq!(declined.joined_text(), r#"{"action":"decline"}"#);
}

/// An elicitor that cancels the call when asked, and never answers.
struct Nobody(CancellationToken, Arc<Mutex<u32>>);

struct TakenBack(Arc<Mutex<u32>>);

impl Drop for TakenBack {
    fn drop(&mut self) {
        *self.0.lock().unwrap() += 1;
    }
}

#[async_trait]
impl Elicitor for Nobody {
    async fn fill_form(&self, _form: Form) -> FormOutcome {
        let _told = TakenBack(Arc::clone(&self.1));
        self.0.cancel();
        std::future::pending().await
    }
}

#[test]
fn elicitation_is_dropped_when_its_call_is_canceled() {
    let state = tempfile::tempdir().unwrap();
    let there = McpServer::start(Revision::Previous).unwrap();
    let cancel = CancellationToken::new();
    let taken_back = Arc::new(Mutex::new(0));
    let nobody = Nobody(cancel.clone(), Arc::clone(&taken_back));
    let all = servers_with_elicitor(
        state.path(),
        vec![http("s", &there.url())],
        Arc::new(nobody),
    );
    block_on(async {
        let error = all
            .call_tool("s", "ask", arguments(json!({})), nowhere(), &cancel)
            .await
            .unwrap_err();
        assert_eq!(error, McpError::Cancelled);
        while *taken_back.lock().unwrap() == 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn bearer_token_is_sent_and_its_absence_suggests_a_login() {
    let state = tempfile::tempdir().unwrap();
    let there = McpServer::start_guarded(Revision::Previous, "t0k").unwrap();
    let all = servers(state.path(), vec![http("s", &there.url())]);
    let error = block_on(all.current_listing("s", &never())).unwrap_err();
    assert_eq!(
        error,
        McpError::Login {
            server: "s".into(),
            challenge: Some("Bearer".into())
        }
    );
    assert!(error.to_string().contains("haft mcp login s"));
    let reach = ServerEndpoint::Http {
        url: there.url(),
        headers: Vec::new(),
        bearer: Some("t0k".into()),
    };
    let all = servers(state.path(), vec![crate::server("s", reach)]);
    block_on(all.current_listing("s", &never())).unwrap();
}
