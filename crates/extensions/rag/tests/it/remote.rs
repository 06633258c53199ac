//! Tests a server that answers for a collection, over a real socket.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use haft_rag::{Remote, RemoteError};

/// Answers one request with `reply`, and returns the address and the received request.
fn serve_once(reply: Vec<u8>) -> (url::Url, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        while !request.ends_with(b"}") {
            let read = stream.read(&mut piece).unwrap();
            request.extend_from_slice(&piece[..read]);
            if read == 0 {
                break;
            }
        }
        // The client may close the connection before everything is sent.
        let _ = stream.write_all(&reply);
        String::from_utf8(request).unwrap()
    });
    (url, asked)
}

fn http_reply(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[tokio::test]
async fn ask_sends_the_key_and_returns_the_answer_with_its_sources() {
    let body = r#"{"choices":[{"message":{"role":"assistant","content":"By the river."}}],"citations":["a.md:1-3"]}"#;
    let (url, asked) = serve_once(http_reply("200 OK", body));
    let told = Remote::new(url, "zoo".into(), Some("the-key".into()))
        .unwrap()
        .ask_question("Where?")
        .await
        .unwrap();
    assert_eq!(
        (told.text.as_str(), told.sources),
        ("By the river.", vec!["a.md:1-3".to_owned()])
    );
    let asked = asked.join().unwrap();
    assert!(
        asked.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{asked}"
    );
    assert!(
        asked
            .to_lowercase()
            .contains("authorization: bearer the-key"),
        "{asked}"
    );
    assert!(
        asked.ends_with(
            r#"{"model":"zoo","messages":[{"role":"user","content":"Where?"}],"stream":false}"#
        ),
        "{asked}"
    );
}

#[tokio::test]
async fn ask_distinguishes_kinds_of_failures() {
    let failure = async |bytes: Vec<u8>| {
        let (url, asked) = serve_once(bytes);
        let error = Remote::new(url, "m".into(), None)
            .unwrap()
            .ask_question("?")
            .await
            .unwrap_err();
        asked.join().unwrap();
        error
    };
    let refused = failure(http_reply("401 Unauthorized", "no key")).await;
    assert!(
        matches!(&refused, RemoteError::Refused { status: 401, said, .. } if said == "no key"),
        "{refused}"
    );
    assert!(matches!(
        failure(http_reply("200 OK", "<html>")).await,
        RemoteError::InvalidReply { .. }
    ));
    assert!(matches!(
        failure(b"nonsense".to_vec()).await,
        RemoteError::Unreachable { .. }
    ));
    // A redirect is not followed: the key would be sent with it.
    let moved = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
        .to_vec();
    assert!(matches!(
        failure(moved).await,
        RemoteError::Refused { status: 302, .. }
    ));
    let endless = [
        http_reply("200 OK", "").split_last().unwrap().1,
        &vec![b'x'; 6 << 20][..],
    ]
    .concat();
    let endless = String::from_utf8(endless)
        .unwrap()
        .replace("content-length: 0\r\n", "")
        .into_bytes();
    assert!(!matches!(
        failure(endless).await,
        RemoteError::Refused { .. }
    ));
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let remote = Remote::new(
        format!("http://{nobody}/v1").parse().unwrap(),
        "m".into(),
        None,
    )
    .unwrap();
    let error = remote.ask_question("?").await.unwrap_err().to_string();
    assert!(
        error.contains(&nobody.to_string()) && error.contains("check `url`"),
        "{error}"
    );
}

#[tokio::test]
async fn ask_sends_the_question_through_a_proxy() {
    let body = r#"{"choices":[{"message":{"role":"assistant","content":"Here."}}]}"#;
    let (proxy, asked) = serve_once(http_reply("200 OK", body));
    let address = format!("{}:{}", proxy.host_str().unwrap(), proxy.port().unwrap());
    let remote =
        || Remote::new("http://rag.example/v1".parse().unwrap(), "m".into(), None).unwrap();
    assert_eq!(
        remote()
            .with_proxy(&address, None)
            .unwrap()
            .ask_question("?")
            .await
            .unwrap()
            .text,
        "Here."
    );
    let asked = asked.join().unwrap();
    assert!(
        asked.starts_with("POST http://rag.example/v1/chat/completions HTTP/1.1\r\n"),
        "{asked}"
    );
    let excepted = remote()
        .with_proxy(&address, Some("rag.example"))
        .unwrap()
        .ask_question("?")
        .await;
    assert!(
        matches!(excepted, Err(RemoteError::Unreachable { .. })),
        "the proxy is not asked: {excepted:?}"
    );
}
