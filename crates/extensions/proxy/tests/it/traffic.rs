//! Tests that the proxy forwards all bytes unchanged in both directions.

use std::io::Write as _;

use haft_proxy::ProxyEvent;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::peers::{
    Answer, TestProxy, Upstream, end_to_end_headers, head_of, post, read_message, unchunked,
};

const BODIES: [(&str, &str); 4] = [
    (
        "/v1/chat/completions",
        r#"{"model":"m", "messages":[{"role":"user","content":"h\u00e9é"}],"stream":true}"#,
    ),
    (
        "/v1/responses",
        r#"{"model":"m","instructions":"x","input":"hi"}"#,
    ),
    (
        "/v1/messages?beta=true",
        r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}"#,
    ),
    (
        "/v1beta/models/m:streamGenerateContent?alt=sse&key=k",
        r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#,
    ),
];

#[tokio::test]
async fn proxy_forwards_requests_and_replies_unchanged() {
    let replies = [
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Odd-Case: 1\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nContent-Length: 15\r\n\r\n{ \"choices\":[]}".to_owned(),
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-type: application/json\r\ncontent-length: 12\r\n\r\n{\"error\":{}}".to_owned(),
        "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 529 \r\ncontent-length: 2\r\nx-empty:\r\n\r\nno".to_owned(),
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/elsewhere\r\ncontent-length: 0\r\n\r\n".to_owned(),
    ];
    for reply in replies {
        let upstream = Upstream::start(Answer::raw(&reply)).await;
        let proxy = TestProxy::before(&upstream).await;
        for (path, body) in BODIES {
            let request = post(path, body);
            let answer = proxy.ask(&request).await;
            let seen = upstream.requests().pop().unwrap();
            assert_eq!(head_of(&seen).unwrap().1, body.as_bytes());
            assert_eq!(
                head_of(&seen).unwrap().0.lines().next().unwrap(),
                format!("POST {path} HTTP/1.1")
            );
            assert_eq!(end_to_end_headers(&seen), end_to_end_headers(&request));
            assert!(
                head_of(&seen)
                    .unwrap()
                    .0
                    .to_ascii_lowercase()
                    .contains(&format!("host: {}", upstream.address))
            );
            assert_eq!(
                head_of(&answer).unwrap().1,
                head_of(reply.as_bytes()).unwrap().1
            );
            assert_eq!(
                end_to_end_headers(&answer),
                end_to_end_headers(reply.as_bytes())
            );
            let status = reply.split(' ').nth(1).unwrap();
            assert!(
                answer.starts_with(format!("HTTP/1.1 {status} ").as_bytes()),
                "{status}"
            );
        }
    }
}

#[tokio::test]
async fn proxy_forwards_requests_that_are_not_for_a_model() {
    let upstream = Upstream::start(Answer::json(r#"{"data":[]}"#)).await;
    let proxy = TestProxy::before(&upstream).await;
    let requests: [&[u8]; 4] = [
        b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip, br\r\n\r\n",
        b"DELETE /v1/files/a%20b?x=1&&y HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /telemetry HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n\0\xff\xfe\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nnot json!",
    ];
    for request in requests {
        proxy.ask(request).await;
        let seen = upstream.requests().pop().unwrap();
        assert_eq!(head_of(&seen).unwrap().1, head_of(request).unwrap().1);
        assert_eq!(
            end_to_end_headers(&seen),
            end_to_end_headers(request),
            "nothing is added"
        );
        let line = |message: &[u8]| {
            head_of(message)
                .unwrap()
                .0
                .lines()
                .next()
                .unwrap()
                .to_owned()
        };
        assert_eq!(line(&seen), line(request));
    }
    let (events, ..) = proxy.finish().await;
    assert_eq!(
        events
            .iter()
            .filter(|event| matches!(event, ProxyEvent::Passed { .. }))
            .count(),
        3
    );
    assert!(
        events
            .iter()
            .any(|event| matches!(event, ProxyEvent::NotRecorded { .. })),
        "{events:?}"
    );
}

#[tokio::test]
async fn proxy_refuses_web_pages_and_foreign_hosts() {
    let upstream = Upstream::start(Answer::json(r#"{"data":[]}"#)).await;
    let proxy = TestProxy::before(&upstream).await;
    for (head, status) in [
        ("Host: a.example\r\n", "421"),
        (
            "Host: a.example:4000\r\nOrigin: http://a.example:4000\r\n",
            "421",
        ),
        ("Host: localhost\r\nOrigin: https://a.example\r\n", "403"),
        ("Host: localhost\r\nOrigin: null\r\n", "403"),
        ("Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\n", "403"),
        ("", "400"),
    ] {
        for method in ["GET", "POST", "OPTIONS"] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\n{head}Content-Length: 2\r\n\r\n{{}}",
                path = "/v1/chat/completions"
            );
            let answer = String::from_utf8(proxy.ask(request.as_bytes()).await).unwrap();
            let refused = answer.starts_with(&format!("HTTP/1.1 {status}"))
                || status == "400" && answer.starts_with("HTTP/1.1 421");
            assert!(refused, "{method} {head}: {answer}");
        }
    }
    assert!(upstream.requests().is_empty(), "nothing is forwarded");
    let (events, ..) = proxy.finish().await;
    assert!(events.is_empty(), "nothing is recorded: {events:?}");
}

#[tokio::test]
async fn proxy_forwards_a_stream_piece_by_piece() {
    let head =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec();
    let pieces = vec![
        head,
        b"9\r\ndata: 1\n\n\r\n".to_vec(),
        b"9\r\ndata: 2\n\n\r\n".to_vec(),
        b"0\r\n\r\n".to_vec(),
    ];
    let upstream = Upstream::start(Answer {
        pieces,
        close: false,
    })
    .await;
    let proxy = TestProxy::before(&upstream).await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    stream
        .write_all(&post(BODIES[0].0, BODIES[0].1))
        .await
        .unwrap();
    let mut received = Vec::new();
    let mut buffer = [0; 1024];
    for expected in ["\r\n\r\n", "data: 1\n\n", "data: 2\n\n", "0\r\n\r\n"] {
        while !String::from_utf8_lossy(&received).contains(expected) {
            let count = stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the stream ended before {expected:?}");
            received.extend_from_slice(&buffer[..count]);
        }
        // The upstream continues only now: the proxy must not hold anything back.
        upstream.next_piece.send(()).unwrap();
    }
    assert_eq!(
        unchunked(head_of(&received).unwrap().1),
        b"data: 1\n\ndata: 2\n\n"
    );
}

#[tokio::test]
async fn proxy_truncates_a_truncated_stream_for_the_client() {
    let answers = [
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n9\r\ndat",
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\ndata: 1\n\n",
    ];
    for answer in answers {
        let upstream = Upstream::start(Answer {
            pieces: vec![answer.into()],
            close: true,
        })
        .await;
        let proxy = TestProxy::before(&upstream).await;
        let received = proxy.ask(&post(BODIES[0].0, BODIES[0].1)).await;
        let text = String::from_utf8_lossy(&received);
        assert!(
            text.contains("data: 1\n\n") && !text.ends_with("0\r\n\r\n"),
            "{text}"
        );
        let (events, ..) = proxy.finish().await;
        let cut = events
            .iter()
            .any(|event| matches!(event, ProxyEvent::Explained(one) if !one.complete));
        assert!(cut, "{events:?}");
    }
    // A head that never arrives.
    let upstream = Upstream::start(Answer {
        pieces: Vec::new(),
        close: true,
    })
    .await;
    let proxy = TestProxy::before(&upstream).await;
    let received = proxy.ask(&post(BODIES[0].0, BODIES[0].1)).await;
    assert!(
        received.starts_with(b"HTTP/1.1 502 "),
        "{}",
        String::from_utf8_lossy(&received)
    );
}

#[tokio::test]
async fn proxy_ends_the_upstream_request_when_the_client_leaves() {
    let head =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n".to_vec();
    let upstream = Upstream::start(Answer {
        pieces: vec![head, b"0\r\n\r\n".to_vec()],
        close: false,
    })
    .await;
    let proxy = TestProxy::before(&upstream).await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    stream
        .write_all(&post(BODIES[0].0, BODIES[0].1))
        .await
        .unwrap();
    let mut buffer = [0; 1024];
    assert!(stream.read(&mut buffer).await.unwrap() > 0);
    drop(stream);
    let (events, ..) = proxy.finish().await;
    assert!(
        events
            .iter()
            .any(|event| matches!(event, ProxyEvent::Explained(one) if !one.complete)),
        "{events:?}"
    );
}

#[tokio::test]
async fn proxy_forwards_compressed_and_chunked_bodies_unchanged() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(br#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9}}"#)
        .unwrap();
    let gzip = gzip.finish().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        gzip.len()
    );
    let upstream = Upstream::start(Answer::raw([head.as_bytes(), &gzip].concat())).await;
    let proxy = TestProxy::before(&upstream).await;
    let body = BODIES[0].1;
    let (first, second) = body.split_at(20);
    let chunked = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    let answer = proxy.ask(chunked.as_bytes()).await;
    assert_eq!(head_of(&answer).unwrap().1, gzip);
    let seen = upstream.requests().pop().unwrap();
    assert_eq!(unchunked(head_of(&seen).unwrap().1), body.as_bytes());
    let (events, ..) = proxy.finish().await;
    let billed = events.iter().any(
        |event| matches!(event, ProxyEvent::Explained(one) if one.complete && one.billed.is_some_and(|usage| usage.input == 9)),
    );
    assert!(billed, "{events:?}");
}

#[tokio::test]
async fn proxy_forwards_fifty_megabytes() {
    // Recorded bodies are also masked and hashed, which is slow in an unoptimized build.
    for (path, size) in [("/v1/files", 50 << 20), ("/v1/chat/completions", 5 << 20)] {
        let large = "x".repeat(size);
        let reply = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{large}",
            large.len()
        );
        let upstream = Upstream::start(Answer::raw(reply)).await;
        let proxy = TestProxy::before(&upstream).await;
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{large}"}}]}}"#);
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        let (mut reader, mut writer) = stream.split();
        let request = post(path, &body);
        let sent = async { writer.write_all(&request).await.unwrap() };
        let received = async {
            let mut all = Vec::new();
            let mut buffer = vec![0; 1 << 20];
            while all.len() < large.len()
                || head_of(&all[..4096])
                    .is_none_or(|(_, rest)| all.len() - 4096 + rest.len() < size)
            {
                let count = reader.read(&mut buffer).await.unwrap();
                assert!(count > 0);
                all.extend_from_slice(&buffer[..count]);
            }
            all
        };
        let ((), received) = tokio::join!(sent, received);
        assert!(received.ends_with(large.as_bytes()));
        let seen = upstream.requests().pop().unwrap();
        assert!(head_of(&seen).unwrap().1 == body.as_bytes());
    }
}

#[tokio::test]
async fn proxy_reuses_connections() {
    let upstream = Upstream::start(Answer::json("{}")).await;
    let proxy = TestProxy::before(&upstream).await;
    let mut stream = TcpStream::connect(proxy.address).await.unwrap();
    for _ in 0..5 {
        stream
            .write_all(&post(BODIES[0].0, BODIES[0].1))
            .await
            .unwrap();
        assert!(
            read_message(&mut stream)
                .await
                .unwrap()
                .ends_with(b"\r\n\r\n{}")
        );
    }
    assert_eq!(upstream.requests().len(), 5);
}

/// codex tries a WebSocket first, and continues over HTTP after a refusal.
#[tokio::test]
async fn proxy_refuses_websockets_at_once() {
    let upstream = Upstream::start(Answer::json("{}")).await;
    let proxy = TestProxy::before(&upstream).await;
    let request = "GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    assert!(
        proxy
            .ask(request.as_bytes())
            .await
            .starts_with(b"HTTP/1.1 426 ")
    );
    assert!(upstream.requests().is_empty());
}
