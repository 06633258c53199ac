use proptest::prelude::*;

use super::*;

fn head(lines: &[&str]) -> Vec<u8> {
    (lines.join("\r\n") + "\r\n\r\n").into_bytes()
}

fn forwarded_request(lines: &[&str]) -> (String, String, u64) {
    let request = parse_request(&head(lines)).unwrap();
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
    parse_request(&head(lines)).unwrap_err().status
}

#[test]
fn read_rewrites_a_plain_request() {
    let (to, head, body) = forwarded_request(&[
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
    let (to, head, _) = forwarded_request(&["GET HTTP://a.example?x HTTP/1.0"]);
    assert_eq!(
        (to.as_str(), head.lines().next()),
        ("a.example:80", Some("GET /?x HTTP/1.0"))
    );
    // Headers that define the request stay even if `Connection` names them.
    let (_, head, _) = forwarded_request(&[
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
fn read_requires_host_and_port_for_connect() {
    let tunnel = |target: &str| parse_request(&head(&[&format!("CONNECT {target} HTTP/1.1")]));
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
fn read_rejects_ambiguous_requests() {
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
fn read_accepts_other_spellings_of_the_host() {
    let (to, head, _) =
        forwarded_request(&["GET http://A.EXAMPLE.:80/ HTTP/1.1", "Host: a.example"]);
    assert_eq!(to, "a.example:80");
    assert!(head.contains("\r\nHost: a.example\r\n"), "{head}");
    assert_eq!(
        forwarded_request(&["GET http://0x7f.1/ HTTP/1.1"]).0,
        "127.0.0.1:80"
    );
}

proptest! {
    /// A forwarded request has one host, at most one length and no transfer encoding, and reading
    /// it again gives an equal request.
    #[test]
    fn read_forwards_only_unambiguous_requests(
        target in "http://[a-c.:@/?#\\[\\]0-9]{1,12}",
        headers in prop::collection::vec(("(?i)(host|content-length|transfer-encoding|connection|x)", "[ a-c0-9,:.]{0,8}"), 0..5),
    ) {
        let mut lines = vec![format!("POST {target} HTTP/1.1")];
        lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
        let bytes = (lines.join("\r\n") + "\r\n\r\n").into_bytes();
        if let Ok(ProxyRequest { host, port, kind: ProxyRequestKind::Plain { head, body, .. } }) = parse_request(&bytes) {
            let text = String::from_utf8(head).unwrap().to_ascii_lowercase();
            prop_assert_eq!(text.matches("\r\nhost:").count(), 1);
            prop_assert!(text.matches("\r\ncontent-length:").count() <= 1);
            prop_assert!(!text.contains("transfer-encoding"));
            let (line, rest) = text.split_once("\r\n").unwrap();
            let path = line.split(' ').nth(1).unwrap();
            let again = format!("POST http://{host}:{port}{path} HTTP/1.1\r\n{rest}");
            let again = parse_request(again.as_bytes()).unwrap();
            prop_assert_eq!((again.host, again.port), (host, port));
            let length = match again.kind {
                ProxyRequestKind::Plain { body, .. } => Some(body),
                ProxyRequestKind::Tunnel => None,
            };
            prop_assert_eq!(length, Some(body));
        }
    }

    #[test]
    fn read_never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_request(&bytes);
    }
}
