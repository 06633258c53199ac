//! Tests of the record of traffic: conversations, bodies byte for byte, no keys, and a size that
//! grows only with new content.

use std::sync::Arc;

use haft_context::Cause;
use haft_proxy::{
    NAMESPACE, ProxyEvent, RecordedBody, RequestExplanation, exchange_key, to_readable_message,
};
use haft_store::{ConversationScope, Store};
use haft_types::{Message, Role};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::peers::{Answer, KEY, TestProxy, Upstream, post};

const CHAT: &str = "/v1/chat/completions";

fn reply_body(text: &str) -> String {
    json!({
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 2_000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1_024}},
    })
    .to_string()
}

fn user_message(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant_message(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn request_body(tools: &[&str], messages: &[Value]) -> String {
    let tool =
        |name: &&str| json!({"type": "function", "function": {"name": name, "parameters": {}}});
    let mut all = vec![json!({"role": "system", "content": "You are an agent."})];
    all.extend_from_slice(messages);
    let mut body = json!({"model": "gpt-6-sol", "messages": all, "stream": false});
    if !tools.is_empty() {
        body["tools"] = tools.iter().map(tool).collect();
    }
    body.to_string()
}

fn explanations(events: &[ProxyEvent]) -> Vec<&RequestExplanation> {
    events
        .iter()
        .filter_map(|event| match event {
            ProxyEvent::Explained(one) => Some(one.as_ref()),
            ProxyEvent::NotRecorded { .. } | ProxyEvent::Passed { .. } => None,
        })
        .collect()
}

#[tokio::test]
async fn record_restores_a_conversation_byte_for_byte() {
    let upstream = Upstream::start(Answer::json(&reply_body("done"))).await;
    let proxy = TestProxy::before(&upstream).await;
    let long = "words ".repeat(2_000);
    let first = [user_message(&long)];
    let second = [
        user_message(&long),
        assistant_message("done"),
        user_message("and now?"),
    ];
    let third = [
        user_message(&long),
        assistant_message("done"),
        user_message("something else?"),
        assistant_message("ok"),
        user_message("go"),
    ];
    let bodies = [
        request_body(&["a", "b"], &first),
        request_body(&["a", "b"], &second),
        request_body(&["a", "b"], &third),
        request_body(&["a"], &third),
    ];
    for body in &bodies {
        proxy.ask(&post(CHAT, body)).await;
    }
    let (events, store, _folder) = proxy.finish().await;
    let rows = store
        .list(ConversationScope::Namespace(NAMESPACE))
        .await
        .unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    let id = &rows[0].id;
    for (index, body) in bodies.iter().enumerate() {
        let logged = store
            .logged_request(id, index as u64 + 1)
            .await
            .unwrap()
            .unwrap();
        let recorded = RecordedBody::from_encoding(logged.encoding.as_deref().unwrap()).unwrap();
        assert_eq!(
            &recorded.join(logged.segments.iter().map(|segment| &segment.message)),
            body
        );
        assert_eq!(recorded.spec.full_name(), "openai/gpt-6-sol");
        let shown = to_readable_message(&logged.segments[3].message, &logged.segments[3].owner);
        if index < 3 {
            assert_eq!(shown.joined_text(), long);
        }
    }
    let found: Vec<_> = explanations(&events)
        .iter()
        .map(|one| {
            one.broken
                .as_ref()
                .map(|broken| (broken.kept, broken.cause))
        })
        .collect();
    assert_eq!(
        found,
        [
            None,
            None,
            Some((5, Cause::RemindersChanged)),
            Some((1, Cause::ToolsChanged))
        ]
    );
    let second = explanations(&events)[1];
    assert!(second.predicted.cached_input >= 1_920, "{second:?}");
    assert_eq!(second.billed.unwrap().cached_input, 1_024);
    assert!(
        second.append_only_cost.unwrap() < second.cost.unwrap(),
        "{second:?}"
    );
    let summaries = store.logged_requests(id).await.unwrap();
    let causes: Vec<_> = summaries.iter().map(|one| one.cause.clone()).collect();
    assert_eq!(
        causes,
        [
            None,
            None,
            Some("reminders_changed".into()),
            Some("tools_changed".into())
        ]
    );
    let state = store.state(id, &exchange_key(1)).await.unwrap().unwrap();
    assert_eq!(state["body"], reply_body("done"));
    let messages = store.messages(id).await.unwrap();
    let said: Vec<_> = messages
        .iter()
        .map(|one| {
            (
                one.role,
                one.joined_text().chars().take(9).collect::<String>(),
            )
        })
        .collect();
    assert_eq!(
        said[..3],
        [
            (Role::User, "words wor".into()),
            (Role::Assistant, "done".into()),
            (Role::User, "and now?".into())
        ]
    );
    assert_eq!(
        messages[1]
            .llm_metadata
            .as_ref()
            .unwrap()
            .cached_input_tokens,
        1_024
    );
}

/// A client that has read `[DONE]` does not wait for the end of the connection.
#[tokio::test]
async fn record_accepts_a_request_before_the_end_of_the_last_reply() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let event = format!(
        "data: {}\n\ndata: [DONE]\n\n",
        reply_body("ok").replace("\"message\"", "\"delta\"")
    );
    let first = vec![
        format!("{head}{:x}\r\n{event}\r\n", event.len()).into_bytes(),
        b"0\r\n\r\n".to_vec(),
    ];
    let upstream = Upstream::with(move |request| {
        let goes_on = String::from_utf8_lossy(request).contains("go on");
        if goes_on {
            Answer::json(&reply_body("ok"))
        } else {
            Answer {
                pieces: first.clone(),
                close: false,
            }
        }
    })
    .await;
    let proxy = TestProxy::before(&upstream).await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    stream
        .write_all(&post(CHAT, &request_body(&["a"], &[user_message("begin")])))
        .await
        .unwrap();
    let mut received = String::new();
    while !received.contains("[DONE]") {
        let mut buffer = [0; 1024];
        let count = stream.read(&mut buffer).await.unwrap();
        received.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    let messages = [
        user_message("begin"),
        assistant_message("ok"),
        user_message("go on"),
    ];
    let request = post(CHAT, &request_body(&["a"], &messages));
    let second = proxy.ask(&request);
    let held = async {
        upstream.wait_for(2).await;
        upstream.next_piece.send(()).unwrap();
    };
    tokio::join!(second, held);
    assert!(received.contains("200 OK"));
    let mut rest = Vec::new();
    while !rest.ends_with(b"0\r\n\r\n") {
        stream.read_buf(&mut rest).await.unwrap();
    }
    let (events, store, _folder) = proxy.finish().await;
    let numbers: Vec<_> = explanations(&events)
        .iter()
        .map(|one| (one.number, one.broken.is_some()))
        .collect();
    assert_eq!(numbers, [(1, false), (2, false)]);
    let id = &explanations(&events)[0].conversation;
    let said: Vec<_> = store
        .messages(id)
        .await
        .unwrap()
        .iter()
        .map(Message::joined_text)
        .collect();
    assert_eq!(said, ["begin", "ok", "go on", "ok"]);
}

#[tokio::test]
async fn record_separates_conversations() {
    let upstream = Upstream::start(Answer::json(&reply_body("ok"))).await;
    let proxy = TestProxy::before(&upstream).await;
    let preamble = user_message("<environment>the same in every session</environment>");
    let tools = ["a"];
    let ask = [
        request_body(&tools, &[preamble.clone(), user_message("one")]),
        request_body(&tools, &[preamble.clone(), user_message("two")]),
        request_body(&[], &[user_message("Make a title for: one")]),
        request_body(
            &tools,
            &[
                preamble.clone(),
                user_message("one"),
                assistant_message("ok"),
                user_message("more"),
            ],
        ),
        request_body(
            &tools,
            &[
                preamble.clone(),
                user_message("two"),
                assistant_message("ok"),
                user_message("more"),
            ],
        ),
        // The beginning of the history is cut, and the rest stays.
        request_body(
            &tools,
            &[
                user_message("Summary of all that was"),
                assistant_message("ok"),
                user_message("more"),
                assistant_message("ok"),
                user_message("again"),
            ],
        ),
    ];
    for body in &ask {
        proxy.ask(&post(CHAT, body)).await;
    }
    let (events, store, _folder) = proxy.finish().await;
    let events = explanations(&events);
    let ids: Vec<_> = events.iter().map(|one| one.conversation.clone()).collect();
    assert_eq!(ids[0], ids[3], "one goes on");
    assert_eq!(ids[1], ids[4], "two goes on");
    assert!(ids[0] != ids[1] && ids[2] != ids[0] && ids[2] != ids[1]);
    assert_eq!(
        events.iter().map(|one| one.is_side).collect::<Vec<_>>(),
        [false, false, true, false, false, false]
    );
    assert!(events[3].broken.is_none() && events[4].broken.is_none());
    assert_eq!(
        events[5].broken.as_ref().map(|broken| broken.cause),
        Some(Cause::Compaction)
    );
    let rows = store
        .list(ConversationScope::Namespace(NAMESPACE))
        .await
        .unwrap();
    assert_eq!(rows.len(), 3, "{rows:?}");
}

#[tokio::test]
async fn record_contains_no_keys() {
    let leak = json!({"choices": [{"message": {"content": format!("your key is {KEY}")}, "finish_reason": "stop"}]});
    let upstream = Upstream::start(Answer::json(&leak.to_string())).await;
    let proxy = TestProxy::before(&upstream).await;
    proxy
        .ask(&post(
            CHAT,
            &request_body(
                &["a"],
                &[user_message(&format!(
                    "curl -H 'Authorization: Bearer {KEY}'"
                ))],
            ),
        ))
        .await;
    let gemini = r#"{"contents":[{"role":"user","parts":[{"text":"query-key-0815-abcdefgh"}]}]}"#;
    proxy
        .ask(&post(
            "/v1beta/models/m:generateContent?key=query-key-0815-abcdefgh",
            gemini,
        ))
        .await;
    for name in ["x-api-key", "api-key", "x-goog-api-key", "cookie"] {
        let text =
            String::from_utf8(post(CHAT, &request_body(&[], &[user_message(name)]))).unwrap();
        proxy
            .ask(
                text.replace("Authorization: Bearer", &format!("{name}:"))
                    .as_bytes(),
            )
            .await;
    }
    let (_, store, folder) = proxy.finish().await;
    assert_eq!(
        store
            .list(ConversationScope::Namespace(NAMESPACE))
            .await
            .unwrap()
            .len(),
        6
    );
    drop(store);
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        for key in [KEY, "query-key-0815-abcdefgh"] {
            let there = bytes
                .windows(key.len())
                .any(|window| window == key.as_bytes());
            assert!(!there, "{} holds a key", path.display());
        }
    }
}

/// Fails if a file in the folder contains the key, or half of it.
fn assert_no_key(folder: &std::path::Path, what: &str) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        for part in [&KEY[..KEY.len() / 2], &KEY[KEY.len() / 2..]] {
            let is_there = bytes
                .windows(part.len())
                .any(|window| window == part.as_bytes());
            assert!(!is_there, "{what}: {} holds `{part}`", path.display());
        }
    }
}

/// Sends one request and returns the folder with the record.
async fn record_one(request: &[u8], answer: Answer) -> Arc<tempfile::TempDir> {
    let upstream = Upstream::start(answer).await;
    let proxy = TestProxy::before(&upstream).await;
    proxy.ask(request).await;
    let (_, store, folder) = proxy.finish().await;
    let rows = store
        .list(ConversationScope::Namespace(NAMESPACE))
        .await
        .unwrap();
    assert_eq!(rows.len(), 1, "the request is recorded");
    drop(store);
    folder
}

#[tokio::test]
async fn record_contains_no_key_of_any_header() {
    let body = request_body(&[], &[user_message(&format!("I know {KEY}"))]);
    let leak = reply_body(&format!("{KEY} is yours"));
    for (header, value) in [
        ("CF-Access-Client-Secret", KEY.to_owned()),
        ("Ocp-Apim-Subscription-Key", KEY.to_owned()),
        ("X-Auth-Key", KEY.to_owned()),
        ("Helicone-Auth", format!("bearer {KEY}")),
        ("Authorization", format!("bearer {KEY}")),
        ("Authorization", format!("BEARER {KEY}")),
        ("Cookie", format!("theme=dark; session={KEY}; a=b")),
        ("X-Amz-Security-Token", KEY.to_owned()),
        ("X-Whatever", KEY.to_owned()),
        ("Proxy-Authorization", KEY.to_owned()),
    ] {
        let request = format!(
            "POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}: {value}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let folder = record_one(request.as_bytes(), Answer::json(&leak)).await;
        assert_no_key(folder.path(), header);
    }
}

#[tokio::test]
async fn record_contains_no_key_of_any_parameter() {
    let body = request_body(&[], &[user_message(&format!("I know {KEY}"))]);
    for name in [
        "sig",
        "auth",
        "subscription-key",
        "x-api-key",
        "key",
        "code",
        "KEY",
    ] {
        let request = post(&format!("{CHAT}?api-version=1&{name}={KEY}"), &body);
        let request = String::from_utf8(request).unwrap();
        let request = request.replace(&format!("Authorization: Bearer {KEY}\r\n"), "");
        let folder = record_one(request.as_bytes(), Answer::json(&reply_body(KEY))).await;
        assert_no_key(folder.path(), name);
    }
}

#[tokio::test]
async fn record_contains_no_encoded_key() {
    let percent: Vec<_> = KEY.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let percent = percent.concat();
    let escaped: Vec<_> = KEY.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let escaped = escaped.concat();
    // `quiet-key-4711-abcdefgh` and `user:quiet-key-4711-abcdefgh`.
    let base64 = [
        "cXVpZXQta2V5LTQ3MTEtYWJjZGVmZ2g=",
        "dXNlcjpxdWlldC1rZXktNDcxMS1hYmNkZWZnaA==",
    ];
    for encoded in [percent.as_str(), escaped.as_str(), base64[0], base64[1]] {
        let body = request_body(&[], &[user_message("ENCODED")]).replace("ENCODED", encoded);
        let leak = reply_body("ENCODED").replace("ENCODED", encoded);
        let folder = record_one(&post(CHAT, &body), Answer::json(&leak)).await;
        assert_no_key(folder.path(), encoded);
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
            let is_there = bytes
                .windows(encoded.len())
                .any(|one| one == encoded.as_bytes());
            assert!(!is_there, "{encoded}");
        }
    }
}

#[tokio::test]
async fn record_contains_no_key_that_a_stream_sends_in_pieces() {
    let body = request_body(&[], &[user_message("go")]);
    for size in [1, 3, 11] {
        let pieces = KEY.as_bytes().chunks(size).map(|piece| {
            let text = std::str::from_utf8(piece).unwrap();
            let event = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
            format!("data: {event}\n\n")
        });
        let stream = pieces.collect::<Vec<_>>().concat() + "data: [DONE]\n\n";
        let answer = Answer::raw(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n{stream}",
            stream.len()
        ));
        let folder = record_one(&post(CHAT, &body), answer).await;
        assert_no_key(folder.path(), "stream");
        let piece = format!("\"content\":\"{}\"", &KEY[..size]);
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
            let is_there = bytes
                .windows(piece.len())
                .any(|one| one == piece.as_bytes());
            assert!(!is_there, "{piece}");
        }
    }
}

#[tokio::test]
async fn record_omits_replies_in_which_no_key_can_be_found() {
    let body = request_body(&[], &[user_message("go")]);
    let wide: Vec<u8> = KEY.bytes().flat_map(|byte| [byte, 0]).collect();
    let mut invalid = vec![0xff, 0xfe];
    invalid.extend_from_slice(KEY.as_bytes());
    for (encoding, content) in [
        ("identity", invalid),
        ("identity", wide.clone()),
        ("rot13", KEY.as_bytes().to_vec()),
        ("gzip", KEY.as_bytes().to_vec()),
    ] {
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {}\r\n\r\n",
            content.len()
        )
        .into_bytes();
        answer.extend(&content);
        let folder = record_one(&post(CHAT, &body), Answer::raw(answer)).await;
        assert_no_key(folder.path(), encoding);
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
            let base64 = b"cXVpZXQta2V5";
            for hidden in [&base64[..], &wide[..20]] {
                assert!(
                    !bytes.windows(hidden.len()).any(|one| one == hidden),
                    "{encoding}"
                );
            }
        }
    }
}

#[tokio::test]
async fn record_continues_conversations_after_a_restart() {
    let upstream = Upstream::start(Answer::json(&reply_body("ok"))).await;
    let proxy = TestProxy::before(&upstream).await;
    let mut messages = vec![user_message("begin")];
    proxy
        .ask(&post(CHAT, &request_body(&["a"], &messages)))
        .await;
    let (events, store, folder) = proxy.finish().await;
    let id = explanations(&events)[0].conversation.clone();
    drop(store);
    let proxy = TestProxy::at(&upstream, Arc::clone(&folder), 1).await;
    messages.extend([assistant_message("ok"), user_message("go on")]);
    proxy
        .ask(&post(CHAT, &request_body(&["a"], &messages)))
        .await;
    messages.extend([assistant_message("ok"), user_message("to the end")]);
    proxy
        .ask(&post(CHAT, &request_body(&["a"], &messages)))
        .await;
    let (events, store, _folder) = proxy.finish().await;
    let one = explanations(&events)[0];
    assert_eq!(
        (&one.conversation, one.number, &one.broken),
        (&id, 2, &None)
    );
    let said: Vec<_> = store
        .messages(&id)
        .await
        .unwrap()
        .iter()
        .map(Message::joined_text)
        .collect();
    assert_eq!(said, ["begin", "ok", "go on", "ok", "to the end", "ok"]);
}

#[tokio::test]
async fn proxy_forwards_and_reports_unrecordable_requests() {
    let upstream = Upstream::start(Answer::json(&reply_body("ok"))).await;
    let proxy = TestProxy::before(&upstream).await;
    let mut messages = vec![user_message("begin")];
    let ask = |messages: &[Value]| post(CHAT, &request_body(&["a"], messages));
    assert!(
        proxy
            .ask(&ask(&messages))
            .await
            .starts_with(b"HTTP/1.1 200")
    );
    // The test deletes the conversation while the recorder uses it.
    let id = loop {
        let rows = proxy
            .store
            .list(ConversationScope::Namespace(NAMESPACE))
            .await
            .unwrap();
        let answered = match rows.first() {
            Some(row) => proxy.store.messages(&row.id).await.unwrap().len() == 2,
            None => false,
        };
        if answered {
            break rows[0].id.clone();
        }
        tokio::task::yield_now().await;
    };
    proxy.store.delete(&id).await.unwrap();
    messages.extend([assistant_message("ok"), user_message("more")]);
    assert!(
        proxy
            .ask(&ask(&messages))
            .await
            .starts_with(b"HTTP/1.1 200")
    );
    messages.extend([assistant_message("ok"), user_message("still more")]);
    assert!(
        proxy
            .ask(&ask(&messages))
            .await
            .starts_with(b"HTTP/1.1 200")
    );
    let (events, ..) = proxy.finish().await;
    let lost = events
        .iter()
        .filter(|event| matches!(event, ProxyEvent::NotRecorded { .. }))
        .count();
    assert_eq!((lost, explanations(&events).len()), (1, 2), "{events:?}");
}

#[tokio::test]
async fn record_grows_only_with_new_messages() {
    let upstream = Upstream::start(Answer::json(&reply_body("ok"))).await;
    let proxy = TestProxy::before(&upstream).await;
    let text = "some words of a result ".repeat(50);
    let mut messages = Vec::new();
    let mut sent = 0;
    let mut new = 0;
    for turn in 0..200 {
        messages.push(user_message(&format!("{turn} {text}")));
        let body = request_body(&["a"], &messages);
        sent += body.len();
        new += text.len() + reply_body("ok").len();
        proxy.ask(&post(CHAT, &body)).await;
        messages.push(assistant_message("ok"));
    }
    let (events, store, folder) = proxy.finish().await;
    assert_eq!(
        explanations(&events).last().map(|one| one.number),
        Some(200)
    );
    drop(store);
    let stored: u64 = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|one| one.unwrap().metadata().unwrap().len())
        .sum();
    // Each new message is stored as sent and as parsed; each request has a layout and headers.
    let most = 3 * new + 200 * 4_000 + (1 << 20);
    assert!(
        (stored as usize) < most,
        "{stored} bytes are stored of {sent} sent, {new} of them new"
    );
    assert!(sent > 20 * new);
}
