//! Connections, recorded requests, refusals, and exhausted scripts.

use std::pin::pin;
use std::time::Duration;

use haft_testkit::support::{RawClient, assert_all_replied};
use haft_testkit::{Gate, Handled, Reply, Script, ScriptedServer, SeenRole};
use haft_types::Api;
use serde_json::json;

use crate::ask::{HEADERS, MODES, Mode, ask, first_request, parse_reply, serve};

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let server = serve([Reply::text("again").times(8)]).await;
    let mut client = RawClient::connect(server.address()).await.unwrap();
    for api in Api::ALL {
        for mode in MODES {
            let (path, body) = first_request(api, mode);
            let reply = client.post(path, &HEADERS, &body).await.unwrap();
            assert_eq!(
                parse_reply(api, mode, &reply).text,
                "again",
                "{api} {mode:?}"
            );
            assert_eq!(server.open_connections(), 1);
        }
    }
    assert_eq!(assert_all_replied(&server).len(), 8);
    drop(client);
    while server.open_connections() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn requests_are_recorded_unchanged() {
    let server = serve([Reply::text("x")]).await;
    let (path, body) = first_request(Api::Anthropic, Mode::Whole);
    let mut client = RawClient::connect(server.address()).await.unwrap();
    client.post(path, &HEADERS, &body).await.unwrap();
    client.get("/nowhere?a=b", &[]).await.unwrap();
    let [asked, lost] = server.requests().try_into().unwrap();
    assert_eq!(
        (asked.number, asked.method.as_str(), asked.path.as_str()),
        (1, "POST", "/v1/messages")
    );
    assert_eq!(asked.body, body.to_string().as_bytes());
    assert_eq!(asked.header("Anthropic-Version"), Some("2023-06-01"));
    assert_eq!(asked.handled, Handled::Replied { reply: 0 });
    assert_eq!(asked.decode().unwrap().texts(SeenRole::User), ["Hi."]);
    assert_eq!(
        (lost.path.as_str(), &lost.handled, lost.api()),
        ("/nowhere?a=b", &Handled::NotFound, None)
    );
    assert!(lost.decode().is_err());
}

#[tokio::test]
async fn request_that_a_service_would_refuse_is_refused() {
    let server = serve([Reply::text("fine")]).await;
    let mut client = RawClient::connect(server.address()).await.unwrap();
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hi." }] });
    let refused = client.post("/v1/messages", &HEADERS, &body).await.unwrap();
    assert_eq!(
        (refused.status, &refused.json()["type"]),
        (400, &json!("error"))
    );
    let [refusal] = server.refusals().try_into().unwrap();
    assert_eq!((refusal.status, refusal.body), (400, refused.json()));
    // A refused request uses up no reply.
    assert_eq!(
        parse_reply(
            Api::Anthropic,
            Mode::Whole,
            &ask(&server, Api::Anthropic, Mode::Whole).await
        )
        .text,
        "fine"
    );
}

#[tokio::test]
async fn body_that_is_not_json_is_an_error() {
    let server = serve([Reply::text("x")]).await;
    for api in Api::ALL {
        let mut client = RawClient::connect(server.address()).await.unwrap();
        client
            .send(
                "POST",
                first_request(api, Mode::Whole).0,
                &HEADERS,
                b"{\"model\":",
            )
            .await
            .unwrap();
        let reply = client.receive().await.unwrap();
        assert_eq!(reply.status, 400, "{api}");
        assert!(
            reply.json()["error"]["message"]
                .as_str()
                .unwrap()
                .contains("not JSON"),
            "{api}"
        );
    }
}

#[tokio::test]
async fn exhausted_script_answers_with_an_error() {
    for api in Api::ALL {
        let server = serve([Reply::text("only one")]).await;
        ask(&server, api, Mode::Stream).await;
        let reply = ask(&server, api, Mode::Stream).await;
        let message = reply.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            reply.status == 500 && message.starts_with("the script has run out"),
            "{api}: {message}"
        );
    }
}

#[tokio::test]
async fn script_turns_follow_the_conversation() {
    let script = Script::turns([Reply::call("f", json!({})), Reply::text("done")]).unwrap();
    let server = ScriptedServer::start(script).await.unwrap();
    let mut client = RawClient::connect(server.address()).await.unwrap();
    let (path, mut body) = first_request(Api::OpenaiChat, Mode::Whole);
    // Asked twice, as after a kill, the first turn is equal except for ids.
    client.post(path, &HEADERS, &body).await.unwrap();
    let reply = client.post(path, &HEADERS, &body).await.unwrap().json();
    let message = &reply["choices"][0]["message"];
    let id = &message["tool_calls"][0]["id"];
    let messages = body["messages"].as_array_mut().unwrap();
    messages
        .push(json!({ "role": "assistant", "content": null, "tool_calls": message["tool_calls"] }));
    messages.push(json!({ "role": "tool", "tool_call_id": id, "content": "ok" }));
    let reply = client.post(path, &HEADERS, &body).await.unwrap().json();
    assert_eq!(reply["choices"][0]["message"]["content"], "done");
}

#[tokio::test]
async fn request_is_recorded_before_its_reply() {
    let server = serve([Reply {
        delay_ms: 3_600_000,
        ..Reply::text("much later")
    }])
    .await;
    let (path, body) = first_request(Api::Gemini, Mode::Stream);
    let mut client = RawClient::connect(server.address()).await.unwrap();
    client
        .send("POST", path, &HEADERS, body.to_string().as_bytes())
        .await
        .unwrap();
    server.wait_for_requests(1).await;
    assert_eq!(server.requests().len(), 1);
    // Dropping the server ends the connection, with or without a reply.
    drop(server);
    assert!(client.receive().await.is_err());
}

#[tokio::test]
async fn gate_holds_replies_until_it_is_opened() {
    for hold in [Reply::held_by, Reply::held_halfway_by] {
        let gate = Gate::default();
        let server = serve([hold(Reply::text("held back"), &gate)]).await;
        let mut asking = pin!(ask(&server, Api::Anthropic, Mode::Stream));
        tokio::select! {
            biased;
            _ = &mut asking => panic!("the reply came through a closed gate"),
            () = server.wait_for_requests(1) => {}
        }
        gate.open();
        assert_eq!(
            parse_reply(Api::Anthropic, Mode::Stream, &asking.await).text,
            "held back"
        );
    }
}

#[test]
fn start_in_thread_runs_a_server_in_its_own_thread() {
    let script = Script::replies([Reply::text("from a thread")]).unwrap();
    let server = ScriptedServer::builder(script).start_in_thread().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let reply = runtime.block_on(ask(&server, Api::Anthropic, Mode::Stream));
    assert_eq!(
        parse_reply(Api::Anthropic, Mode::Stream, &reply).text,
        "from a thread"
    );
    let address = server.address();
    drop(server);
    assert!(runtime.block_on(RawClient::connect(address)).is_err());
}

#[tokio::test]
async fn lean_server_records_only_times() {
    let script = Script::replies([Reply::text("quick").times(8)]).unwrap();
    let server = ScriptedServer::builder(script)
        .lean()
        .start()
        .await
        .unwrap();
    let mut client = RawClient::connect(server.address()).await.unwrap();
    for api in Api::ALL {
        for mode in MODES {
            let (path, body) = first_request(api, mode);
            let reply = client.post(path, &HEADERS, &body).await.unwrap();
            assert_eq!(
                parse_reply(api, mode, &reply).text,
                "quick",
                "{api} {mode:?}"
            );
        }
    }
    assert!(server.requests().is_empty());
    let timings = server.timings();
    assert_eq!(timings.len(), 8);
    for pair in timings.windows(2) {
        assert!(
            pair[0].received <= pair[0].replied.unwrap()
                && pair[0].replied.unwrap() <= pair[1].received
        );
    }
}

#[tokio::test]
async fn start_on_reports_a_port_in_use() {
    let server = serve([]).await;
    let port = server.address().port();
    let error = ScriptedServer::start_on(Script::replies([]).unwrap(), port)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains(&format!("127.0.0.1:{port}")),
        "{error}"
    );
}

#[tokio::test]
async fn example_scripts_are_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/scripts");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let script = Script::from_yaml(&path.display().to_string(), &text)
            .unwrap_or_else(|error| panic!("{error}"));
        let server = ScriptedServer::start(script).await.unwrap();
        let answered = tokio::time::timeout(
            Duration::from_mins(1),
            ask(&server, Api::Anthropic, Mode::Stream),
        )
        .await;
        assert_ne!(answered.unwrap().status, 500, "{}", path.display());
        count += 1;
    }
    assert!(count >= 3, "{folder} holds {count} scripts");
}

#[test]
fn documented_scripts_are_valid() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/scripted-model.md"
    ))
    .unwrap();
    let scripts: Vec<&str> = page
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(scripts.len() >= 5, "{} scripts", scripts.len());
    for script in scripts {
        Script::from_yaml("docs/scripted-model.md", script)
            .unwrap_or_else(|error| panic!("{error}\n{script}"));
    }
}
