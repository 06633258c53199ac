use proptest::prelude::*;

use super::*;

fn head(lines: &[&str]) -> Vec<u8> {
    (lines.join("\r\n") + "\r\n\r\n").into_bytes()
}

fn sent_on(lines: &[&str]) -> (String, String, u64) {
    let request = read(&head(lines)).unwrap();
    match request.kind {
        ProxyRequestKind::Plain { head, body, .. } => (
            format!("{}:{}", request.host, request.port),
            String::from_utf8(head).unwrap(),
            body,
        ),
        ProxyRequestKind::Tunnel => panic!("a tunnel"),
    }
}

fn status(lines: &[&str]) -> u16 {
    read(&head(lines)).unwrap_err().status
}

#[test]
fn a_plain_request_is_written_anew() {
    let (to, head, body) = sent_on(&[
        "POST http://A.Example:8080/p?q=1 HTTP/1.1",
        "Host: a.example:8080",
        "Accept: */*",
        "Proxy-Connection: keep-alive",
        "Proxy-Authorization: Basic eA==",
        "Connection: keep-alive, X-Private",
        "X-Private: 1",
        "Upgrade: websocket",
        "Content-Length: 5",
    ]);
    assert_eq!((to.as_str(), body), ("a.example:8080", 5));
    assert_eq!(
        head,
        "POST /p?q=1 HTTP/1.1\r\nHost: a.example:8080\r\nAccept: */*\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
    );
    let (to, head, _) = sent_on(&["GET HTTP://a.example?x HTTP/1.0"]);
    assert_eq!(
        (to.as_str(), head.lines().next()),
        ("a.example:80", Some("GET /?x HTTP/1.0"))
    );
    // Headers that define the request stay even if `Connection` names them.
    let (_, head, _) = sent_on(&[
        "POST http://a.example/ HTTP/1.1",
        "Connection: Content-Length, Host",
        "Content-Length: 3",
        "Host: a.example",
    ]);
    assert!(
        head.contains("Content-Length: 3") && head.contains("Host: a.example"),
        "{head}"
    );
}

#[test]
fn connect_needs_host_and_port() {
    let tunnel = |target: &str| read(&head(&[&format!("CONNECT {target} HTTP/1.1")]));
    let request = tunnel("Example.com:443").unwrap();
    assert_eq!(
        (
            request.host.to_string().as_str(),
            request.port,
            request.kind
        ),
        ("example.com", 443, ProxyRequestKind::Tunnel)
    );
    assert_eq!(tunnel("[::1]:22").unwrap().port, 22);
    for target in [
        "example.com",
        "example.com:",
        "example.com:0",
        "example.com:99999",
        ":443",
        "::1:443",
        "a@b:443",
        "/x",
        "*",
    ] {
        assert_eq!(tunnel(target).unwrap_err().status, 400, "{target}");
    }
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    let get = "GET http://a.example/ HTTP/1.1";
    let post = "POST http://a.example/ HTTP/1.1";
    for lines in [
        &[post, "Content-Length: 5", "Content-Length: 5"][..],
        &[post, "Content-Length: 5", "content-length: 6"],
        &[post, "Content-Length: 5, 5"],
        &[post, "Content-Length: +5"],
        &[post, "Content-Length: 0x5"],
        &[post, "Content-Length:"],
        &[post, "Content-Length: 99999999999999999999"],
        &[post, "Content-Length: 5", "Transfer-Encoding: chunked"],
        &[post, "Transfer-Encoding: chunked", "Content-Length: 5"],
        &[post, "Content-Length : 5"],
        &[post, "Content-Length: 5\n5"],
        &[post, "X: a\rContent-Length: 5"],
        &[post, "X: a\0b"],
        &[post, "X: a", " folded"],
        &[get, "Host: b.example"],
        &[get, "Host: a.example:81"],
        &[get, "Host: a.example", "Host: a.example"],
        &[get, "Host: a.example, b.example"],
        &[get, "Host:"],
        &["GET http://a.example@b.example/ HTTP/1.1"],
        &["GET http://a.example\\@b.example/ HTTP/1.1"],
        &["GET http://a.example#@b.example/ HTTP/1.1"],
        &["GET http://a.example/#x HTTP/1.1"],
        &["GET http://a.example:80:81/ HTTP/1.1"],
        &["GET http://%61.example/ HTTP/1.1"],
        &["GET http:///x HTTP/1.1"],
        &["GET https://a.example/ HTTP/1.1"],
        &["GET //a.example/ HTTP/1.1"],
        &["GET /x HTTP/1.1", "Host: a.example"],
        &["GET * HTTP/1.1"],
        &["GET http://a.example/ HTTP/2.0"],
        &["GET http://a.example/"],
        &["PRI * HTTP/2.0"],
    ] {
        assert_eq!(status(lines), 400, "{lines:?}");
    }
    assert_eq!(status(&[post, "Transfer-Encoding: chunked"]), 411);
    assert_eq!(status(&[post, "Transfer-Encoding: identity"]), 411);
    let many: Vec<_> = std::iter::once(get)
        .chain(std::iter::repeat_n("X: y", 101))
        .collect();
    assert_eq!(status(&many), 431);
}

#[test]
fn the_same_host_in_another_spelling_is_the_same() {
    let (to, head, _) = sent_on(&["GET http://A.EXAMPLE.:80/ HTTP/1.1", "Host: a.example"]);
    assert_eq!(to, "a.example:80");
    assert!(head.contains("\r\nHost: a.example\r\n"), "{head}");
    assert_eq!(sent_on(&["GET http://0x7f.1/ HTTP/1.1"]).0, "127.0.0.1:80");
}

proptest! {
    /// A forwarded request has one host, at most one length and no transfer encoding, and reading
    /// it again gives an equal request.
    #[test]
    fn what_is_sent_on_is_unambiguous(
        target in "http://[a-c.:@/?#\\[\\]0-9]{1,12}",
        headers in prop::collection::vec(("(?i)(host|content-length|transfer-encoding|connection|x)", "[ a-c0-9,:.]{0,8}"), 0..5),
    ) {
        let mut lines = vec![format!("POST {target} HTTP/1.1")];
        lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
        let bytes = (lines.join("\r\n") + "\r\n\r\n").into_bytes();
        if let Ok(ProxyRequest { host, port, kind: ProxyRequestKind::Plain { head, body, .. } }) = read(&bytes) {
            let text = String::from_utf8(head).unwrap().to_ascii_lowercase();
            prop_assert_eq!(text.matches("\r\nhost:").count(), 1);
            prop_assert!(text.matches("\r\ncontent-length:").count() <= 1);
            prop_assert!(!text.contains("transfer-encoding"));
            let (line, rest) = text.split_once("\r\n").unwrap();
            let path = line.split(' ').nth(1).unwrap();
            let again = format!("POST http://{host}:{port}{path} HTTP/1.1\r\n{rest}");
            let again = read(again.as_bytes()).unwrap();
            prop_assert_eq!((again.host, again.port), (host, port));
            let length = match again.kind {
                ProxyRequestKind::Plain { body, .. } => Some(body),
                ProxyRequestKind::Tunnel => None,
            };
            prop_assert_eq!(length, Some(body));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }
}
