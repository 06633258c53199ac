//! The examples, run against the scripted model; and what a session has of extensions.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

#[path = "../../examples/by_hand.rs"]
#[expect(dead_code, reason = "the example's own `main` is not called")]
mod by_hand;
#[path = "../../examples/coding_agent.rs"]
#[expect(dead_code, reason = "the example's own `main` is not called")]
mod coding_agent;
#[path = "../../examples/own_tool.rs"]
#[expect(dead_code, reason = "the example's own `main` is not called")]
mod own_tool;

mod extensions;

use haft_testkit::{Reply, Script, ScriptedServer, SeenRole};
use haft_types::{Api, Event, EventBody, Outcome};
use serde_json::json;
use tokio_util::sync::CancellationToken;

async fn start_server(replies: impl IntoIterator<Item = Reply>) -> ScriptedServer {
    ScriptedServer::start(Script::turns(replies).unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn coding_agent_example_fixes_a_file() {
    let edit = json!({"path": "greet.txt", "content": "Hello, world\n"});
    let server = start_server([
        Reply::call("write_to_file", edit),
        Reply::text("The greeting is fixed."),
    ])
    .await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let project = folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let mut sandbox = None;
    let mut tell = |event: &Event| {
        if let EventBody::Conversation { sandbox: found, .. } = &event.body {
            sandbox.clone_from(found);
        }
    };
    let url = server.base_url(Api::Anthropic);
    let work = coding_agent::work(&url, (&home, &project), "Fix the greeting", &mut tell);
    let result = Box::pin(work).await.unwrap();
    assert_eq!(
        (result.outcome, result.text.as_str()),
        (Outcome::Completed, "The greeting is fixed.")
    );
    assert_eq!(
        std::fs::read_to_string(project.join("greet.txt")).unwrap(),
        "Hello, world\n"
    );
    assert!(
        home.join("data/conversations.db").is_file(),
        "the conversation is kept"
    );
    assert!(sandbox.is_some(), "what holds commands in is told");
    assert!(server.refusals().is_empty());
}

#[tokio::test]
async fn own_tool_example_offers_no_file_tools() {
    let server = start_server([
        Reply::call("roll", json!({"dice": 2})),
        Reply::text("Eight."),
    ])
    .await;
    let folder = tempfile::tempdir().unwrap();
    let agent = own_tool::croupier(&server.base_url(Api::Anthropic), folder.path());
    let mut session = agent.start("Roll two dice").await.unwrap();
    let expected_events = [
        "conversation",
        "tool_call",
        "usage",
        // The call runs.
        "tool_call",
        "tool_result",
        "text",
        "usage",
        "result",
    ];
    let mut events = Vec::new();
    let mut note = |event: &Event| {
        let event = serde_json::to_value(event).unwrap();
        let kind = event["type"].as_str().unwrap().to_owned();
        if expected_events.contains(&kind.as_str()) {
            events.push(kind);
        }
    };
    let task = Some("Roll two dice".to_owned());
    let report = session
        .run(task, &mut note, &CancellationToken::new())
        .await;
    let result = report.result;
    assert_eq!(
        (result.outcome, result.text.as_str(), result.turns),
        (Outcome::Completed, "Eight.", 2)
    );
    assert!(server.refusals().is_empty());

    let requests: Vec<_> = server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect();
    assert!(
        requests[0].system.contains("You are a croupier."),
        "{}",
        requests[0].system
    );
    assert_eq!(
        requests[0]
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect::<Vec<_>>(),
        ["roll"]
    );
    assert!(
        requests[1].messages.starts_with(&requests[0].messages),
        "requests only append"
    );
    assert_eq!(requests[1].messages.last().unwrap().role, SeenRole::Tool);
    assert!(requests[1].last_message_contains("2 dice show 8 in all."));
    events.dedup();
    assert_eq!(events, expected_events);
}

#[tokio::test]
async fn by_hand_example_builds_and_sends_a_request() {
    let server = start_server([Reply::text("Because of Rayleigh scattering.")]).await;
    let (answer, tokens) = by_hand::ask(&server.base_url(Api::Anthropic), "Why is the sky blue?")
        .await
        .unwrap();
    assert_eq!(answer, "Because of Rayleigh scattering.");
    assert!(tokens.contains("current"), "{tokens}");
    let request = server.generation_requests()[0].decode().unwrap();
    assert!(
        request.last_message_contains("answer in one sentence"),
        "the reminder is sent"
    );
}
