//! Each API, streaming and not, sends the content of the script.

use haft_testkit::support::RawClient;
use haft_testkit::{Reply, ReplyPart, ScriptCall, Stop};
use haft_types::{Api, Usage};
use serde_json::json;

use crate::ask::{HEADERS, MODES, Mode, ParsedReply, ask, first_request, parse_reply, serve};

fn full_reply() -> Reply {
    let usage = Usage {
        input: 100,
        cached_input: 50,
        cache_write: 25,
        output: 40,
        reasoning: 10,
    };
    Reply {
        signature: Some("proof".into()),
        delta_chars: Some(3),
        ..Reply::calls([
            ScriptCall::new("read", json!({ "path": "süß 漢字" })).with_id("one"),
            ScriptCall::new(
                "read",
                json!({ "path": "b", "deep": { "list": [1, 2.5, null] } }),
            )
            .with_id("two"),
        ])
        .with_text("Words and \"quotes\",\nlines, 漢字.")
        .with_thinking("Hm, let me see …")
        .with_usage(usage)
    }
}

#[tokio::test]
async fn replies_hold_the_scripted_content_on_every_api() {
    for api in Api::ALL {
        for mode in MODES {
            let server = serve([full_reply()]).await;
            let reply = ask(&server, api, mode).await;
            assert_eq!(
                reply.status,
                200,
                "{api} {mode:?}: {}",
                String::from_utf8_lossy(&reply.body)
            );
            let found = parse_reply(api, mode, &reply);
            let stop = match api {
                Api::OpenaiChat => "tool_calls",
                Api::OpenaiResponses => "completed",
                Api::Anthropic => "tool_use",
                Api::Gemini => "STOP",
            };
            // Each API reports the usage that it has fields for.
            let usage = match api {
                Api::OpenaiChat | Api::OpenaiResponses => full_reply().usage.unwrap(),
                Api::Anthropic => Usage {
                    reasoning: 0,
                    ..full_reply().usage.unwrap()
                },
                Api::Gemini => Usage {
                    input: 125,
                    cache_write: 0,
                    ..full_reply().usage.unwrap()
                },
            };
            let wanted = ParsedReply {
                text: "Words and \"quotes\",\nlines, 漢字.".into(),
                thinking: "Hm, let me see …".into(),
                signature: if api == Api::OpenaiChat {
                    String::new()
                } else {
                    "proof".into()
                },
                calls: vec![
                    (
                        "one".into(),
                        "read".into(),
                        "{\"path\":\"süß 漢字\"}".into(),
                    ),
                    (
                        "two".into(),
                        "read".into(),
                        "{\"path\":\"b\",\"deep\":{\"list\":[1,2.5,null]}}".into(),
                    ),
                ],
                stop: stop.into(),
                usage,
            };
            assert_eq!(found, wanted, "{api} {mode:?}");
        }
    }
}

#[tokio::test]
async fn stop_reasons_are_spelled_as_on_each_api() {
    let words = [
        (Stop::EndTurn, ["stop", "completed", "end_turn", "STOP"]),
        (
            Stop::Length,
            ["length", "max_output_tokens", "max_tokens", "MAX_TOKENS"],
        ),
        (
            Stop::Refusal,
            ["content_filter", "content_filter", "refusal", "SAFETY"],
        ),
    ];
    for (stop, words) in words {
        for (api, word) in Api::ALL.into_iter().zip(words) {
            for mode in MODES {
                let server = serve([Reply {
                    stop: Some(stop),
                    ..Reply::text("x")
                }])
                .await;
                let reply = ask(&server, api, mode).await;
                assert_eq!(
                    parse_reply(api, mode, &reply).stop,
                    word,
                    "{api} {mode:?} {stop:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn reply_parts_keep_their_order() {
    let parts = [
        ReplyPart::text("before"),
        ReplyPart::ToolCall(ScriptCall::new("f", json!({}))),
        ReplyPart::text("after"),
    ];
    let server = serve([Reply::parts(parts)]).await;
    let reply = ask(&server, Api::Anthropic, Mode::Whole).await.json();
    let kinds: Vec<&str> = reply["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["text", "tool_use", "text"]);
}

#[tokio::test]
async fn broken_arguments_are_sent_unchanged() {
    for raw in [r#"{"path": "cut"#, r#"{"a":1,"a":2}"#, r"{} and more"] {
        for api in Api::ALL {
            for mode in MODES {
                let server = serve([Reply::call("f", json!(raw))]).await;
                let reply = ask(&server, api, mode).await;
                let text = String::from_utf8(reply.body.clone()).unwrap();
                match (api, mode) {
                    // Streamed as text, piece by piece, on these.
                    (Api::OpenaiChat | Api::OpenaiResponses, _)
                    | (Api::Anthropic, Mode::Stream) => {
                        assert_eq!(
                            parse_reply(api, mode, &reply).calls[0].2,
                            raw,
                            "{api} {mode:?}"
                        );
                    }
                    // Part of the JSON around it: arguments that are valid JSON are inserted
                    // unchanged, any others as a string.
                    (Api::Anthropic, Mode::Whole) | (Api::Gemini, _) => {
                        let as_text = json!(raw).to_string();
                        assert!(
                            text.contains(raw) || text.contains(&as_text),
                            "{api} {mode:?}: {text}"
                        );
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn streams_end_with_the_marker_of_each_api() {
    let ends = [
        "[DONE]",
        "response.completed",
        "message_stop",
        "finishReason",
    ];
    for (api, end) in Api::ALL.into_iter().zip(ends) {
        let server = serve([Reply::text("Some words.")]).await;
        let reply = ask(&server, api, Mode::Stream).await;
        assert!(
            reply
                .header("content-type")
                .unwrap()
                .starts_with("text/event-stream"),
            "{api}"
        );
        let events = reply.events();
        let (_, last) = events.last().unwrap();
        assert!(last.contains(end), "{api}: {last}");
        assert_eq!(
            events.iter().filter(|(_, data)| data.contains(end)).count(),
            1,
            "{api}"
        );
    }
}

#[tokio::test]
async fn chat_sends_usage_only_when_asked() {
    let server = serve([Reply::text("x")]).await;
    let (path, mut body) = first_request(Api::OpenaiChat, Mode::Stream);
    body.as_object_mut().unwrap().remove("stream_options");
    let mut client = RawClient::connect(server.address()).await.unwrap();
    let reply = client.post(path, &HEADERS, &body).await.unwrap();
    assert!(!String::from_utf8(reply.body).unwrap().contains("usage"));
}

#[tokio::test]
async fn gemini_streams_a_json_list_without_alt_sse() {
    let server = serve([Reply {
        delta_chars: Some(2),
        ..Reply::text("abcdef")
    }])
    .await;
    let (path, body) = first_request(Api::Gemini, Mode::Stream);
    let path = path.strip_suffix("?alt=sse").unwrap();
    let reply = RawClient::connect(server.address())
        .await
        .unwrap()
        .post(path, &HEADERS, &body)
        .await
        .unwrap();
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json().as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn models_and_token_counts_are_served() {
    let server = serve([]).await;
    let mut client = RawClient::connect(server.address()).await.unwrap();
    let listed = client.get("/v1/models", &[]).await.unwrap().json();
    assert_eq!(listed["data"][0]["id"], "scripted-model");
    let listed = client
        .get("/v1/models", &[("anthropic-version", "2023-06-01")])
        .await
        .unwrap()
        .json();
    assert_eq!(
        (&listed["data"][0]["type"], &listed["has_more"]),
        (&json!("model"), &json!(false))
    );
    let listed = client.get("/v1beta/models", &[]).await.unwrap().json();
    assert_eq!(listed["models"][0]["name"], "models/scripted-model");
    let (_, body) = first_request(Api::Anthropic, Mode::Whole);
    let counted = client
        .post("/v1/messages/count_tokens", &HEADERS, &body)
        .await
        .unwrap()
        .json();
    assert!(counted["input_tokens"].as_u64().unwrap() > 0);
    let (_, body) = first_request(Api::Gemini, Mode::Whole);
    let counted = client
        .post("/v1beta/models/m:countTokens", &HEADERS, &body)
        .await
        .unwrap()
        .json();
    assert!(counted["totalTokens"].as_u64().unwrap() > 0);
}
