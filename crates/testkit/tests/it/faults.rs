//! Faults happen exactly as scripted.

use haft_testkit::{Garbage, Replace, Reply, ScriptedError};
use haft_types::Api;
use serde_json::{Value, json};

use crate::ask::{MODES, Mode, ask, serve};

#[tokio::test]
async fn chunk_bytes_does_not_change_the_body() {
    let reply = Reply {
        delta_chars: Some(4),
        ..Reply::call("f", json!({ "a": "漢字" })).with_text("süß 😀")
    };
    for api in Api::ALL {
        for mode in MODES {
            let whole = ask(&serve([reply.clone()]).await, api, mode).await;
            for size in (1..=17).chain([
                100,
                whole.body.len() - 1,
                whole.body.len(),
                whole.body.len() + 1,
            ]) {
                let cut = ask(
                    &serve([Reply {
                        chunk_bytes: Some(size),
                        ..reply.clone()
                    }])
                    .await,
                    api,
                    mode,
                )
                .await;
                assert!(
                    cut.complete && cut.body == whole.body,
                    "{api} {mode:?}, pieces of {size}"
                );
                if mode == Mode::Stream {
                    assert_eq!(
                        cut.pieces.len(),
                        whole.body.len().div_ceil(size),
                        "{api}, pieces of {size}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn drop_after_bytes_drops_after_exactly_that_number() {
    let reply = Reply::text("A sentence that is not going to be finished.");
    for api in Api::ALL {
        for mode in MODES {
            let whole = ask(&serve([reply.clone()]).await, api, mode).await;
            for end in [0, 1, 100, whole.body.len() - 1, whole.body.len()] {
                let dropped = Reply {
                    drop_after_bytes: Some(end),
                    ..reply.clone()
                };
                let server = serve([dropped]).await;
                let got = ask(&server, api, mode).await;
                assert_eq!(got.body, whole.body[..end], "{api} {mode:?} at {end}");
                // A body of the announced length is complete, even if the connection is dropped
                // after it.
                let complete = mode == Mode::Whole && end == whole.body.len();
                assert_eq!(got.complete, complete, "{api} {mode:?} at {end}");
            }
        }
    }
}

#[tokio::test]
async fn http_errors_have_the_format_of_each_service() {
    let shapes = [
        json!({ "error": { "message": "Slow down.", "type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded" } }),
        json!({ "error": { "message": "Slow down.", "type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded" } }),
        json!({ "type": "error", "error": { "type": "rate_limit_error", "message": "Slow down." }, "request_id": "req_scripted" }),
        json!({ "error": { "code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED", "details": [
            { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s" },
        ] } }),
    ];
    for (api, shape) in Api::ALL.into_iter().zip(shapes) {
        for mode in MODES {
            let server = serve([Reply {
                retry_after: Some(1.5),
                ..Reply::error(429, "Slow down.")
            }])
            .await;
            let reply = ask(&server, api, mode).await;
            assert_eq!(
                (reply.status, reply.json()),
                (429, shape.clone()),
                "{api} {mode:?}"
            );
            assert_eq!(
                (reply.header("retry-after"), reply.header("retry-after-ms")),
                (Some("2"), Some("1500"))
            );
        }
    }
}

#[tokio::test]
async fn error_event_ends_the_stream() {
    for api in Api::ALL {
        let reply = Reply {
            delta_chars: Some(1),
            error_event_after: Some(4),
            status: Some(529),
            error: Some(ScriptedError::new("Overloaded.")),
            ..Reply::text("many words come here")
        };
        let server = serve([reply]).await;
        let got = ask(&server, api, Mode::Stream).await;
        assert_eq!((got.status, got.complete), (200, true), "{api}");
        let events = got.events();
        assert_eq!(events.len(), 5, "{api}");
        let last: Value = serde_json::from_str(&events[4].1).unwrap();
        let message = if api == Api::OpenaiResponses {
            &last["message"]
        } else {
            &last["error"]["message"]
        };
        assert_eq!(message, "Overloaded.", "{api}: {last}");
    }
}

#[tokio::test]
async fn error_event_is_an_http_error_without_streaming() {
    let reply = Reply {
        error_event_after: Some(2),
        ..Reply::text("words")
    };
    for api in Api::ALL {
        let got = ask(&serve([reply.clone()]).await, api, Mode::Whole).await;
        assert_eq!(got.status, 500, "{api}");
    }
}

#[tokio::test]
async fn omit_end_leaves_out_the_end_of_the_message() {
    let ends = [
        "finish_reason\":\"stop",
        "response.completed",
        "message_stop",
        "finishReason",
    ];
    for (api, end) in Api::ALL.into_iter().zip(ends) {
        let server = serve([Reply {
            omit_end: true,
            ..Reply::text("All the words.")
        }])
        .await;
        let got = ask(&server, api, Mode::Stream).await;
        let body = String::from_utf8(got.body).unwrap();
        assert!(
            got.complete && body.contains("All the words.") && !body.contains(end),
            "{api}: {body}"
        );
        assert!(!body.contains("[DONE]"), "{api}");
    }
}

#[tokio::test]
async fn garbage_is_sent_unchanged() {
    for api in Api::ALL {
        let html = Garbage {
            body: b"<html>\xff</html>".to_vec(),
            content_type: "text/html".into(),
        };
        let fine = Reply {
            garbage: Some(html.clone()),
            ..Reply::default()
        };
        let bad = Reply {
            status: Some(502),
            ..fine.clone()
        };
        let server = serve([fine, bad]).await;
        for status in [200, 502] {
            let got = ask(&server, api, Mode::Stream).await;
            assert_eq!(
                (got.status, &got.body, got.header("content-type")),
                (status, &html.body, Some("text/html"))
            );
        }
    }
}

#[tokio::test]
async fn replace_inserts_bytes_that_are_not_utf8() {
    let call = Reply::call("f", json!({ "path": "MARK" }));
    let reply = Reply {
        replace: Some(Replace {
            find: "MARK".into(),
            with: vec![b'a', 0xff],
        }),
        ..call
    };
    for api in Api::ALL {
        for mode in MODES {
            let got = ask(&serve([reply.clone()]).await, api, mode).await;
            assert!(
                got.complete && std::str::from_utf8(&got.body).is_err(),
                "{api} {mode:?}"
            );
            assert!(
                got.body.windows(2).any(|pair| pair == [b'a', 0xff]),
                "{api} {mode:?}"
            );
        }
    }
}
