//! Tests which requests are repeated, and how often.

use haft_model::{Delta, RetryConfig};
use haft_testkit::{Garbage, Reply, Script, ScriptedError};
use haft_types::Api;
use tokio_util::sync::CancellationToken;

use super::{
    ask, client, client_of, hello_request, provider, retries, retry_without_waiting, serve,
    text_after_last_retry, text_of,
};

#[tokio::test]
async fn retry_follows_transient_statuses() {
    for api in Api::ALL {
        for status in [408, 409, 429, 500, 502, 503, 529] {
            let server =
                serve(Script::replies([Reply::error(status, "busy"), Reply::text("ok")]).unwrap())
                    .await;
            let (deltas, reply) = ask(&mut client(api, &server), &hello_request()).await;
            assert_eq!(text_of(&reply.unwrap()), "ok", "{api} {status}");
            assert_eq!(
                retries(&deltas),
                [(1, Some(2))],
                "{api} {status}: it never gave a valid reply"
            );
        }
    }
}

#[tokio::test]
async fn retry_does_not_follow_rejected_requests() {
    for api in Api::ALL {
        for status in [400, 401, 403, 404, 413, 422] {
            let server =
                serve(Script::replies([Reply::error(status, "no"), Reply::text("ok")]).unwrap())
                    .await;
            let (deltas, reply) = ask(&mut client(api, &server), &hello_request()).await;
            let error = reply.unwrap_err();
            assert!(error.to_string().contains("no"), "{api} {status}: {error}");
            assert_eq!(retries(&deltas), [], "{api} {status}");
            assert_eq!(server.requests().len(), 1, "{api} {status}");
        }
    }
}

#[tokio::test]
async fn retry_leaves_out_an_unsupported_field() {
    let message = "anthropic does not support parameters: ['prompt_cache_key']";
    let replies = [
        Reply::error(400, message),
        Reply::text("one"),
        Reply::text("two"),
    ];
    let server = serve(Script::replies(replies).unwrap()).await;
    let mut client = client(Api::OpenaiResponses, &server);
    let (deltas, reply) = ask(&mut client, &hello_request()).await;
    assert_eq!(text_of(&reply.unwrap()), "one");
    assert!(
        matches!(&deltas[0], Delta::FieldOmitted { field, reason }
            if *field == "prompt_cache_key" && reason.contains(message)),
        "{deltas:?}"
    );
    assert_eq!(retries(&deltas), []);
    let (deltas, reply) = ask(&mut client, &hello_request()).await;
    assert_eq!(text_of(&reply.unwrap()), "two");
    assert!(
        !deltas
            .iter()
            .any(|delta| matches!(delta, Delta::FieldOmitted { .. })),
        "{deltas:?}"
    );
    let keyed: Vec<bool> = server
        .requests()
        .iter()
        .map(|sent| String::from_utf8_lossy(&sent.body).contains("prompt_cache_key"))
        .collect();
    assert_eq!(keyed, [true, false, false]);
}

#[tokio::test]
async fn retry_leaves_out_each_field_once() {
    let error = || Reply::error(400, "Unsupported parameter: 'include'");
    let server = serve(Script::replies([error(), error(), Reply::text("ok")]).unwrap()).await;
    let (_, reply) = ask(&mut client(Api::OpenaiResponses, &server), &hello_request()).await;
    assert!(reply.unwrap_err().to_string().contains("include"));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn retry_does_not_follow_a_spend_limit() {
    for api in Api::ALL {
        let error = ScriptedError {
            message: "You have reached your spend limit.".into(),
            ..ScriptedError::default()
        };
        let spent = Reply {
            status: Some(429),
            error: Some(error),
            ..Reply::default()
        };
        let server = serve(Script::replies([spent, Reply::text("ok")]).unwrap()).await;
        let (deltas, reply) = ask(&mut client(api, &server), &hello_request()).await;
        assert_eq!(reply.unwrap_err().code(), "spend_limit", "{api}");
        assert_eq!(retries(&deltas), [], "{api}");
    }
}

#[tokio::test]
async fn retry_follows_a_dropped_stream_and_discards_its_text() {
    for api in Api::ALL {
        let whole = "All of it, every word.";
        let drops = [
            Reply {
                omit_end: true,
                ..Reply::text(whole)
            },
            Reply {
                drop_after_bytes: Some(400),
                delta_chars: Some(2),
                ..Reply::text(whole)
            },
            Reply {
                error_event_after: Some(2),
                ..Reply::text(whole)
            },
        ];
        for drop in drops {
            let case = format!("{api} {drop:?}");
            let server = serve(Script::replies([drop, Reply::text(whole)]).unwrap()).await;
            let (deltas, reply) = ask(&mut client(api, &server), &hello_request()).await;
            assert_eq!(text_of(&reply.unwrap()), whole, "{case}");
            assert_eq!(text_after_last_retry(&deltas), whole, "{case}");
            assert_eq!(retries(&deltas), [(1, Some(5))], "{case}");
        }
    }
}

/// Wherever the connection breaks, the client returns the whole reply or an error, never half a
/// reply.
#[tokio::test]
async fn retry_follows_a_drop_at_any_byte() {
    for api in Api::ALL {
        let whole = "One two three.";
        for bytes in (0..1_600).step_by(97) {
            let drop = Reply {
                drop_after_bytes: Some(bytes),
                ..Reply::text(whole)
            };
            let server = serve(Script::replies([drop, Reply::text(whole)]).unwrap()).await;
            let (_, reply) = ask(&mut client(api, &server), &hello_request()).await;
            assert_eq!(text_of(&reply.unwrap()), whole, "{api} dropped at {bytes}");
        }
    }
}

#[tokio::test]
async fn retry_stops_after_the_last_attempt() {
    for api in Api::ALL {
        let server = serve(Script::replies([Reply::error(500, "down").times(99)]).unwrap()).await;
        let retry = RetryConfig {
            attempts: 2,
            ..retry_without_waiting()
        };
        let mut client = client_of(provider(api, &server.base_url(api)), retry);
        let (deltas, reply) = ask(&mut client, &hello_request()).await;
        let error = reply.unwrap_err();
        assert_eq!(error.code(), "provider_error");
        assert!(
            error.to_string().starts_with("gave up after 2 retries"),
            "{error}"
        );
        assert!(error.is_setup_failure(), "no reply was ever valid");
        assert_eq!(retries(&deltas), [(1, Some(2)), (2, Some(2))], "{api}");
        assert_eq!(server.requests().len(), 3, "{api}");
    }
}

/// Uses the default number of attempts and all kinds of statuses.
#[tokio::test]
async fn retry_is_limited_to_three_requests_before_the_first_valid_reply() {
    for (status, asked) in [
        (500, 3),
        (502, 3),
        (529, 3),
        (429, 3),
        (400, 1),
        (402, 1),
        (422, 1),
    ] {
        let server = serve(Script::replies([Reply::error(status, "no").times(99)]).unwrap()).await;
        let mut client = client_of(
            provider(Api::OpenaiChat, &server.base_url(Api::OpenaiChat)),
            retry_without_waiting(),
        );
        let (_, reply) = ask(&mut client, &hello_request()).await;
        assert!(reply.unwrap_err().is_setup_failure(), "{status}");
        assert_eq!(server.requests().len(), asked, "{status}");
    }
    // After the first valid reply, all attempts are used.
    let replies = [
        Reply::text("ok").times(1),
        Reply::error(500, "down").times(99),
    ];
    let server = serve(Script::replies(replies).unwrap()).await;
    let mut client = client_of(
        provider(Api::OpenaiChat, &server.base_url(Api::OpenaiChat)),
        retry_without_waiting(),
    );
    ask(&mut client, &hello_request()).await.1.unwrap();
    assert!(
        !ask(&mut client, &hello_request())
            .await
            .1
            .unwrap_err()
            .is_setup_failure()
    );
    assert_eq!(server.requests().len(), 1 + 6);
}

/// A configured number of attempts is honored even if the first ones fail in every way.
#[tokio::test]
async fn retry_uses_all_configured_attempts_while_the_server_answers() {
    let cut = || Reply {
        drop_after_bytes: Some(0),
        ..Reply::text("never seen")
    };
    let replies = [
        Reply::error(500, "down"),
        cut(),
        Reply::error(502, "down").times(5),
        cut(),
        Reply::text("ok"),
    ];
    let server = serve(Script::replies(replies).unwrap()).await;
    let retry = RetryConfig {
        attempts: 30,
        ..retry_without_waiting()
    };
    let mut client = client_of(
        provider(Api::OpenaiChat, &server.base_url(Api::OpenaiChat)),
        retry,
    );
    let (deltas, reply) = ask(&mut client, &hello_request()).await;
    assert_eq!(text_of(&reply.unwrap()), "ok");
    assert_eq!(retries(&deltas).len(), 8);
}

#[tokio::test]
async fn retry_without_a_limit_continues() {
    let server =
        serve(Script::replies([Reply::error(500, "down").times(20), Reply::text("ok")]).unwrap())
            .await;
    let retry = RetryConfig {
        attempts: -1,
        ..retry_without_waiting()
    };
    let mut client = client_of(
        provider(Api::Anthropic, &server.base_url(Api::Anthropic)),
        retry,
    );
    let (deltas, reply) = ask(&mut client, &hello_request()).await;
    assert_eq!(text_of(&reply.unwrap()), "ok");
    assert_eq!(retries(&deltas).len(), 20);
    assert_eq!(retries(&deltas)[19], (20, None));
}

/// A person can interrupt, so a server that has never answered gets the configured number of
/// retries.
#[tokio::test]
async fn retry_of_attended_requests_follows_the_configuration() {
    let retry = || RetryConfig {
        is_attended: true,
        ..retry_without_waiting()
    };
    let broken = Script::replies([Reply::error(500, "down").times(4), Reply::text("ok")]).unwrap();
    let server = serve(broken).await;
    let api = Api::OpenaiChat;
    let mut client = client_of(provider(api, &server.base_url(api)), retry());
    let (deltas, reply) = ask(&mut client, &hello_request()).await;
    assert_eq!(text_of(&reply.unwrap()), "ok");
    assert_eq!(retries(&deltas).len(), 4);
    let limit = retry().max_retries();
    let mut client = client_of(provider(api, "http://127.0.0.1:1/v1"), retry());
    let (deltas, reply) = ask(&mut client, &hello_request()).await;
    assert!(reply.is_err());
    assert_eq!(Some(retries(&deltas).len() as u32), limit);
}

#[tokio::test]
async fn retry_honors_retry_after() {
    for api in Api::ALL {
        let busy = Reply {
            retry_after: Some(0.0),
            ..Reply::error(429, "slow down")
        };
        let server = serve(Script::replies([busy, Reply::text("ok")]).unwrap()).await;
        // Without the hint, the client would wait at least half a second and report it.
        let mut client = client_of(provider(api, &server.base_url(api)), RetryConfig::default());
        let (deltas, reply) = ask(&mut client, &hello_request()).await;
        assert_eq!(text_of(&reply.unwrap()), "ok", "{api}");
        let waits: Vec<_> = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::Retry { delay_ms, .. } => Some(*delay_ms),
                Delta::Text(_)
                | Delta::Thinking(_)
                | Delta::CallStarted { .. }
                | Delta::CallArguments { .. }
                | Delta::CallFinished { .. }
                | Delta::FieldOmitted { .. } => None,
            })
            .collect();
        assert_eq!(waits, [0], "{api}");
    }
}

#[tokio::test]
async fn retry_outlasts_long_waits_only_if_set() {
    for (retry_after, outlasts, waits) in [
        (61.0, true, true),
        (61.0, false, false),
        // A wait of a minute counts as an attempt.
        (60.0, true, false),
    ] {
        let busy = Reply {
            retry_after: Some(retry_after),
            ..Reply::error(429, "slow down")
        };
        let replies = [Reply::error(500, "down"), busy.times(2)];
        let server = serve(Script::replies(replies).unwrap()).await;
        let api = Api::OpenaiChat;
        let retry = RetryConfig {
            attempts: 1,
            is_attended: true,
            outlasts_long_waits: outlasts,
            ..retry_without_waiting()
        };
        let mut client = client_of(provider(api, &server.base_url(api)), retry);
        let cancel = CancellationToken::new();
        let mut deltas = Vec::new();
        let error = client
            .stream_reply(&hello_request(), &cancel, &mut |delta| {
                deltas.push(delta);
                // The wait of a minute is not slept through.
                if deltas.len() == 2 {
                    cancel.cancel();
                }
            })
            .await
            .unwrap_err();
        let expected: &[_] = if waits {
            &[(1, Some(1)), (2, None)]
        } else {
            &[(1, Some(1))]
        };
        assert_eq!(retries(&deltas), expected, "{retry_after} {outlasts}");
        assert_eq!(error.is_cancelled(), waits, "{retry_after}: {error}");
    }
}

#[tokio::test]
async fn retry_follows_a_silent_server() {
    let silent = [
        Reply {
            delay_ms: 600_000,
            ..Reply::text("late")
        },
        Reply {
            delta_delay_ms: 600_000,
            ..Reply::text("late")
        },
    ];
    // On a busy machine a good reply may exceed a short limit and is then requested again, too.
    let replies = silent.into_iter().chain([Reply::text("ok").times(20)]);
    let server = serve(Script::replies(replies).unwrap()).await;
    let retry = RetryConfig {
        attempts: 20,
        first_byte_timeout_s: 1,
        idle_timeout_s: 1,
        ..retry_without_waiting()
    };
    let mut client = client_of(
        provider(Api::Anthropic, &server.base_url(Api::Anthropic)),
        retry,
    );
    let (deltas, reply) = ask(&mut client, &hello_request()).await;
    assert_eq!(text_of(&reply.unwrap()), "ok");
    assert!(retries(&deltas).len() >= 2, "{deltas:?}");
}

/// After a server's first valid reply, a bad one is treated as transient.
#[tokio::test]
async fn retry_follows_a_web_page_after_a_valid_reply() {
    for api in Api::ALL {
        let page = Garbage {
            body: b"<html>gateway</html>".to_vec(),
            content_type: "text/html".into(),
        };
        let page = Reply {
            garbage: Some(page),
            ..Reply::default()
        };
        let server = serve(
            Script::replies([Reply::text("ok"), page.times(4), Reply::text("ok again")]).unwrap(),
        )
        .await;
        let mut client = client(api, &server);
        assert_eq!(
            text_of(&ask(&mut client, &hello_request()).await.1.unwrap()),
            "ok"
        );
        let (deltas, reply) = ask(&mut client, &hello_request()).await;
        assert_eq!(text_of(&reply.unwrap()), "ok again", "{api}");
        assert_eq!(retries(&deltas).len(), 4, "{api}");
    }
}
