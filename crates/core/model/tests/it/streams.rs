//! Replies, streamed and whole, on all four APIs.

use haft_model::{Client, Delta};
use haft_testkit::{Reply, Script, ScriptCall};
use haft_types::{Api, Part, StopReason, Usage};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    ask, client, client_of, hello_request, provider, retry_without_waiting, serve,
    text_after_last_retry, text_of,
};

fn reply_with_thinking_text_and_calls() -> Reply {
    Reply::calls([
        ScriptCall::new("read_file", json!({"path": "a.rs"})),
        ScriptCall::new("read_file", json!({"path": "世界.rs"})),
    ])
    .with_text("Grüße, 世界 🌍. Reading.")
    .with_thinking("Two files.")
    .with_usage(Usage {
        input: 120,
        cached_input: 2_000,
        cache_write: 0,
        output: 40,
        reasoning: 12,
    })
}

#[tokio::test]
async fn reply_is_equal_on_every_api_streamed_and_whole() {
    for api in Api::ALL {
        for stream in [true, false] {
            let server =
                serve(Script::replies([reply_with_thinking_text_and_calls()]).unwrap()).await;
            let mut provider = provider(api, &server.base_url(api));
            provider.stream = stream;
            let (deltas, reply) = ask(
                &mut client_of(provider, retry_without_waiting()),
                &hello_request(),
            )
            .await;
            let reply = reply.unwrap();
            let case = format!("{api}, stream {stream}");
            assert_eq!(text_of(&reply), "Grüße, 世界 🌍. Reading.", "{case}");
            assert_eq!(
                text_after_last_retry(&deltas),
                "Grüße, 世界 🌍. Reading.",
                "{case}"
            );
            assert_eq!(reply.stop, StopReason::ToolUse, "{case}");
            assert_eq!(
                (
                    reply.usage.input,
                    reply.usage.cached_input,
                    reply.usage.output
                ),
                (120, 2_000, 40),
                "{case}"
            );
            assert!(reply.time_to_first_token <= reply.duration);
            let thoughts: Vec<_> = reply.parts.iter().filter_map(thought).collect();
            assert_eq!(thoughts, ["Two files."], "{case}");
            let arguments: Vec<_> = reply.parts.iter().filter_map(arguments).collect();
            assert_eq!(
                arguments,
                [r#"{"path":"a.rs"}"#, r#"{"path":"世界.rs"}"#],
                "{case}"
            );
            assert_eq!(
                deltas
                    .iter()
                    .filter(|delta| matches!(delta, Delta::CallFinished { .. }))
                    .count(),
                2,
                "{case}"
            );
            assert!(
                server.refusals().is_empty(),
                "{case}: {:?}",
                server.refusals()
            );
        }
    }
}

fn thought(part: &Part) -> Option<&str> {
    match part {
        Part::Thinking(thinking) => Some(&thinking.text),
        Part::Text { .. } | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => None,
    }
}

fn arguments(part: &Part) -> Option<&str> {
    match part {
        Part::ToolCall(call) => Some(&call.arguments),
        Part::Text { .. } | Part::Thinking(_) | Part::ToolResult(_) | Part::Image(_) => None,
    }
}

#[tokio::test]
async fn reply_does_not_depend_on_the_chunking_of_the_body() {
    for api in Api::ALL {
        let cut = |chunk_bytes| Reply {
            chunk_bytes: Some(chunk_bytes),
            delta_chars: Some(3),
            ..reply_with_thinking_text_and_calls()
        };
        let sizes = [1, 2, 3, 7, 100];
        let server = serve(Script::replies(sizes.map(cut)).unwrap()).await;
        let mut seen = Vec::new();
        for size in sizes {
            let (_, reply) = ask(&mut client(api, &server), &hello_request()).await;
            let reply = reply.unwrap_or_else(|error| panic!("{api} in chunks of {size}: {error}"));
            seen.push((reply.parts, reply.stop, reply.usage));
        }
        // Servers that assign ids number them; everything else must be equal.
        let texts: Vec<_> = seen
            .iter()
            .map(|(parts, ..)| parts.iter().filter_map(arguments).collect::<Vec<_>>())
            .collect();
        assert!(texts.windows(2).all(|pair| pair[0] == pair[1]), "{api}");
        assert!(
            seen.windows(2)
                .all(|pair| pair[0].1 == pair[1].1 && pair[0].2 == pair[1].2),
            "{api}"
        );
    }
}

#[tokio::test]
async fn reply_keeps_call_arguments_that_are_not_json() {
    let broken = r#"{"path": "a", "path": "b"} and more"#;
    for api in [Api::OpenaiChat, Api::OpenaiResponses, Api::Anthropic] {
        let server =
            serve(Script::replies([Reply::call("read_file", broken.into())]).unwrap()).await;
        let (_, reply) = ask(&mut client(api, &server), &hello_request()).await;
        let reply = reply.unwrap();
        assert_eq!(
            reply.parts.iter().filter_map(arguments).collect::<Vec<_>>(),
            [broken],
            "{api}"
        );
    }
}

/// The engine sends requests in spawned tasks.
#[tokio::test]
async fn stream_future_can_be_spawned() {
    let server = serve(Script::replies([Reply::text("ok")]).unwrap()).await;
    let mut client = client(Api::OpenaiChat, &server);
    let task = tokio::spawn(async move { ask(&mut client, &hello_request()).await.1 });
    assert_eq!(text_of(&task.await.unwrap().unwrap()), "ok");
}

#[tokio::test]
async fn client_reuses_connections() {
    for api in Api::ALL {
        let server = serve(
            Script::replies([Reply::text("one"), Reply::text("two"), Reply::text("three")])
                .unwrap(),
        )
        .await;
        let mut client = client(api, &server);
        for expected in ["one", "two", "three"] {
            assert_eq!(
                text_of(&ask(&mut client, &hello_request()).await.1.unwrap()),
                expected
            );
        }
        assert_eq!(server.open_connections(), 1, "{api}");
    }
}

#[tokio::test]
async fn client_cancel_ends_a_request_to_a_silent_model() {
    for api in Api::ALL {
        let slow = Reply {
            delay_ms: 600_000,
            ..Reply::text("late")
        };
        let server = serve(Script::replies([slow]).unwrap()).await;
        let mut client = client(api, &server);
        let cancel = CancellationToken::new();
        let hello = hello_request();
        let mut sink = |_| {};
        let asking = client.stream_reply(&hello, &cancel, &mut sink);
        let stopping = async {
            while server.requests().is_empty() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        let (reply, ()) = tokio::join!(asking, stopping);
        assert!(reply.unwrap_err().is_cancelled(), "{api}");
    }
}

#[tokio::test]
async fn client_cancel_ends_a_request_between_two_deltas() {
    for api in Api::ALL {
        let slow = Reply {
            delta_delay_ms: 600_000,
            delta_chars: Some(1),
            ..Reply::text("late")
        };
        let server = serve(Script::replies([slow]).unwrap()).await;
        let mut client = client(api, &server);
        let cancel = CancellationToken::new();
        let hello = hello_request();
        let mut sink = |_| {};
        let asking = client.stream_reply(&hello, &cancel, &mut sink);
        let stopping = async {
            while server.requests().is_empty() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        let (reply, ()) = tokio::join!(asking, stopping);
        assert!(reply.unwrap_err().is_cancelled(), "{api}");
    }
}

#[tokio::test]
async fn list_models_returns_the_providers_models() {
    let cancel = CancellationToken::new();
    for api in Api::ALL {
        let script = Script::replies([Reply::text("unused")])
            .unwrap()
            .with_models(["one", "two"]);
        let server = serve(script).await;
        let client: Client = client(api, &server);
        assert_eq!(
            client.list_models(&cancel).await.unwrap(),
            ["one", "two"],
            "{api}"
        );
    }
}
