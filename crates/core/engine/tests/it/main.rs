//! Integration tests of the engine as others embed it.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

#[path = "../../examples/weather.rs"]
#[expect(dead_code, reason = "the example's own `main` is not called")]
mod weather;

#[path = "../../examples/gate_campaign/desk.rs"]
mod desk;

mod cold;
mod kept_once;
mod unreadable_state;

use haft_testkit::{Reply, Script, ScriptedServer, SeenRole};
use haft_types::{Api, Event, Outcome};
use serde_json::json;

#[tokio::test]
async fn another_agent_runs_on_the_base_loop() {
    let script = Script::turns([
        Reply::call("forecast", json!({"city": "Zürich"})),
        Reply::text("Yes, from noon on."),
    ]);
    let server = ScriptedServer::start(script.unwrap()).await.unwrap();
    let mut kinds = Vec::new();
    let mut tell = |event: &Event| {
        kinds.push(
            serde_json::to_value(event).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    };
    let result = weather::ask(
        &server.base_url(Api::Anthropic),
        "Will it rain in Zürich?",
        &mut tell,
    )
    .await
    .unwrap();
    assert_eq!(
        (result.outcome, result.text.as_str(), result.turns),
        (Outcome::Completed, "Yes, from noon on.", 2)
    );
    assert!(server.refusals().is_empty());

    let requests: Vec<_> = server
        .generations()
        .iter()
        .map(|request| request.seen().unwrap())
        .collect();
    assert_eq!(
        requests[0].system, "You answer questions about the weather.",
        "nothing of the coding agent is there"
    );
    assert_eq!(
        requests[0]
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect::<Vec<_>>(),
        ["forecast"]
    );
    assert_eq!(
        requests[1].messages[..1],
        requests[0].messages[..],
        "requests only append"
    );
    assert_eq!(requests[1].messages.last().unwrap().role, SeenRole::Tool);
    assert!(requests[1].last_contains("Zürich: rain from noon on."));
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "conversation",
            "tool_call",
            "usage",
            "tool_result",
            "text",
            "usage",
            "result"
        ]
    );
}
