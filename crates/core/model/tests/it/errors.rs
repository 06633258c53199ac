//! Tests of wrong servers, keys and declarations: the errors, and that the client reports that the
//! server was never valid.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use haft_model::{Catalogue, Client, ModelError, ProviderConfig, RetryConfig, Secret};
use haft_testkit::{Garbage, Reply, Script};
use haft_types::Api;

use super::{
    ask, client, client_of, hello_request, provider, retries, retry_without_waiting, serve,
};

#[tokio::test]
async fn client_reports_an_unreachable_server() {
    for api in Api::ALL {
        // The port was free just now.
        let address = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let mut client = client_of(
            provider(api, &format!("http://{address}/v1")),
            RetryConfig::default(),
        );
        let (deltas, reply) = ask(&mut client, &hello_request()).await;
        let error = reply.unwrap_err();
        assert_eq!(error.code(), "unreachable", "{api}: {error}");
        assert!(error.is_setup_failure());
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        assert_eq!(retries(&deltas), [(1, Some(2)), (2, Some(2))], "{api}");
    }
}

/// Answers every connection with `answer` and closes it.
fn serve_fixed_bytes(answer: &'static [u8]) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            // Wait for the request: an earlier answer would be a different error.
            let mut head = Vec::new();
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                let mut byte = [0];
                connection.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            let _ = connection.write_all(answer);
            let _ = connection.shutdown(std::net::Shutdown::Write);
            // Closing the socket with unread data would reset the connection and lose the answer.
            let _ = connection.read_to_end(&mut Vec::new());
        }
    });
    address
}

#[tokio::test]
async fn client_reports_a_server_that_does_not_speak_http() {
    for answer in [&b""[..], b"SSH-2.0-OpenSSH_9.9\r\n"] {
        let address = serve_fixed_bytes(answer);
        let (deltas, reply) = ask(
            &mut client_of(
                provider(Api::Gemini, &format!("http://{address}")),
                retry_without_waiting(),
            ),
            &hello_request(),
        )
        .await;
        let error = reply.unwrap_err();
        assert_eq!(error.code(), "unreachable", "{error}");
        assert!(
            error.is_setup_failure() && error.to_string().contains("no answer in HTTP"),
            "{error}"
        );
        assert_eq!(retries(&deltas).len(), 2);
    }
}

#[tokio::test]
async fn client_does_not_follow_redirects() {
    let address = serve_fixed_bytes(
        b"HTTP/1.1 301 Moved\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    );
    let (deltas, reply) = ask(
        &mut client_of(
            provider(Api::Gemini, &format!("http://{address}")),
            retry_without_waiting(),
        ),
        &hello_request(),
    )
    .await;
    let error = reply.unwrap_err();
    assert_eq!(error.code(), "not_an_api", "{error}");
    assert!(error.to_string().contains("status 301"), "{error}");
    assert_eq!(retries(&deltas), []);
}

#[tokio::test]
async fn client_reports_a_web_page_as_not_an_api() {
    for api in Api::ALL {
        let page = Garbage {
            body: b"<!doctype html><title>Hi</title>".to_vec(),
            content_type: "text/html".into(),
        };
        let server = serve(
            Script::replies([Reply {
                garbage: Some(page),
                ..Reply::default()
            }
            .times(9)])
            .unwrap(),
        )
        .await;
        let (deltas, reply) = ask(&mut client(api, &server), &hello_request()).await;
        let error = reply.unwrap_err();
        assert_eq!(error.code(), "not_an_api", "{api}: {error}");
        assert!(
            error.is_setup_failure() && error.to_string().contains("<title>Hi</title>"),
            "{error}"
        );
        assert_eq!(retries(&deltas).len(), 2, "{api}");
        assert_eq!(server.requests().len(), 3, "{api}");
    }
}

#[tokio::test]
async fn client_reports_a_wrong_path_as_not_an_api() {
    let server = serve(Script::replies([Reply::text("unused")]).unwrap()).await;
    let base = format!("http://{}/nowhere", server.address());
    let (_, reply) = ask(
        &mut client_of(provider(Api::OpenaiChat, &base), retry_without_waiting()),
        &hello_request(),
    )
    .await;
    let error = reply.unwrap_err();
    assert!(
        matches!(error.code(), "not_an_api" | "request_refused"),
        "{error}"
    );
}

#[tokio::test]
async fn client_rejects_unreadable_events() {
    for api in Api::ALL {
        for body in [
            &b"data: {\"type\":\n\n"[..],
            b"data: \xff\xfe\n\n",
            b"data: {}\n\n",
            b": nothing\n\n",
            b"",
        ] {
            let garbage = Garbage {
                body: body.to_vec(),
                content_type: "text/event-stream".into(),
            };
            let server = serve(
                Script::replies([Reply {
                    garbage: Some(garbage),
                    ..Reply::default()
                }
                .times(9)])
                .unwrap(),
            )
            .await;
            let (_, reply) = ask(&mut client(api, &server), &hello_request()).await;
            let error = reply.unwrap_err();
            assert!(
                matches!(error.code(), "bad_reply" | "not_an_api" | "connection_lost"),
                "{api}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn client_reports_a_rejected_key_without_showing_it() {
    for api in Api::ALL {
        let server =
            serve(Script::replies([Reply::error(401, "invalid x-api-key")]).unwrap()).await;
        let (_, reply) = ask(&mut client(api, &server), &hello_request()).await;
        let error = reply.unwrap_err();
        assert_eq!(error.code(), "unauthorized");
        assert!(error.is_setup_failure());
        assert!(
            error.to_string().contains("invalid x-api-key")
                && !error.to_string().contains("sk-test"),
            "{error}"
        );
    }
}

pub(crate) fn client_error(provider: ProviderConfig, key: &str) -> ModelError {
    let catalogue =
        Catalogue::new([("mock".to_owned(), provider)].into(), BTreeMap::new()).unwrap();
    let made = Client::new(
        catalogue.resolve("mock/test").unwrap(),
        Some(Secret::new(key)),
        retry_without_waiting(),
    );
    made.err().expect("the declaration is refused")
}

#[test]
fn client_rejects_bad_declarations_before_a_request() {
    let bad_url = |url: &str| client_error(provider(Api::OpenaiChat, url), "k").to_string();
    assert!(
        bad_url("api.example.com").contains("`base_url` is not a URL"),
        "{}",
        bad_url("api.example.com")
    );
    assert!(bad_url("ftp://h/v1").contains("must start with http:// or https://"));
    assert!(bad_url("").contains("`base_url` is not a URL"));

    let mut with_header = provider(Api::OpenaiChat, "http://127.0.0.1:1");
    with_header.headers.insert("bad name".into(), "x".into());
    assert!(
        client_error(with_header, "k")
            .to_string()
            .contains("`bad name` is not the name of a header")
    );

    let error = client_error(
        provider(Api::OpenaiChat, "http://127.0.0.1:1"),
        "two\nlines",
    );
    assert!(
        error.to_string().contains("no header can carry") && !error.to_string().contains("two"),
        "{error}"
    );
    assert!(error.is_setup_failure());
}
