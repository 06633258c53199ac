//! Hostile servers, authorization servers and visitors: what a login reveals, and which of their
//! claims it accepts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use haft_mcp::{McpError, ServerDefinition, ServerEndpoint, begin_login};
use haft_testkit::support::{McpServer, Revision, visit_url};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{block_on, http, servers};

/// A request to the server.
#[derive(Clone, Debug)]
struct Asked {
    target: String,
    head: String,
    body: String,
}

/// Status, further headers and body.
type Page = (&'static str, String, String);

/// A server that answers with a given function and records all requests.
struct Hostile {
    origin: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Hostile {
    fn start(answer: impl Fn(&str, &Asked) -> Page + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let own = origin.clone();
        let seen = Arc::clone(&asked);
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for visitor in listener.incoming().flatten() {
                let own = own.clone();
                let seen = Arc::clone(&seen);
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || {
                    let Some(request) = read_request(&visitor) else {
                        return;
                    };
                    seen.lock().unwrap().push(request.clone());
                    let (status, headers, body) = answer(&own, &request);
                    let head = format!(
                        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n",
                        body.len()
                    );
                    // The client may have disconnected.
                    let _ = (&visitor)
                        .write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes());
                });
            }
        });
        Self { origin, asked }
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// Returns the text of all requests.
    fn received_text(&self) -> String {
        let asked = self.asked.lock().unwrap();
        let all: Vec<_> = asked
            .iter()
            .map(|Asked { target, head, body }| [target, head, body].map(String::as_str).join("\n"))
            .collect();
        all.join("\n")
    }
}

fn read_request(visitor: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(visitor);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let target = head.split(' ').nth(1)?.to_owned();
    Some(Asked {
        target,
        head,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn json_page(value: &Value) -> Page {
    (
        "200 OK",
        "content-type: application/json\r\n".to_owned(),
        value.to_string(),
    )
}

fn metadata(origin: &str) -> Value {
    json!({
        "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"), "registration_endpoint": format!("{origin}/register"),
        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    })
}

/// Returns the pages of a correct login.
fn honest_page(origin: &str, asked: &Asked) -> Page {
    match asked.target.split('?').next().unwrap_or_default() {
        "/.well-known/oauth-protected-resource/mcp" => json_page(
            &json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] }),
        ),
        "/.well-known/oauth-authorization-server" => json_page(&metadata(origin)),
        "/register" => json_page(&json!({ "client_id": "client-1", "redirect_uris": [] })),
        "/mcp" => {
            let page = format!("{origin}/.well-known/oauth-protected-resource/mcp");
            (
                "401 Unauthorized",
                format!("www-authenticate: Bearer resource_metadata=\"{page}\"\r\n"),
                String::new(),
            )
        }
        _ => ("404 Not Found", String::new(), String::new()),
    }
}

/// Starts a server whose authorization metadata is changed by `change`.
fn server_with_changed_metadata(
    change: impl Fn(&mut Value, &str) + Send + Sync + 'static,
) -> Hostile {
    Hostile::start(move |origin, asked| {
        if asked.target != "/.well-known/oauth-authorization-server" {
            return honest_page(origin, asked);
        }
        let mut described = metadata(origin);
        change(&mut described, origin);
        json_page(&described)
    })
}

fn never() -> CancellationToken {
    CancellationToken::new()
}

fn challenge(there: &Hostile) -> String {
    format!(
        "Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
        there.origin
    )
}

/// Begins a login; returns the page the user is sent to, or the error.
fn begin_login_at(there: &Hostile, state: &Path) -> Result<String, String> {
    block_on(async {
        let begun = begin_login(
            &http("s", &there.url()),
            state.join("tokens"),
            Some(&challenge(there)),
        )
        .await?;
        Ok(begun.url().to_owned())
    })
}

#[test]
fn login_to_an_honest_server_begins() {
    let there = Hostile::start(honest_page);
    let state = tempfile::tempdir().unwrap();
    let page = begin_login_at(&there, state.path()).unwrap();
    assert!(
        page.starts_with(&format!("{}/authorize?", there.origin)),
        "{page}"
    );
    assert!(page.contains("code_challenge_method=S256"), "{page}");
}

#[test]
fn login_does_not_show_pages_that_are_no_safe_web_address() {
    for page in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "vscode://run",
        "ssh://host/x",
        "http://198.51.100.7/authorize",
        "https://user:secret@login.example/authorize",
        "//login.example/x",
        "",
        "x-haft-\u{1b}[2J:run",
    ] {
        let state = tempfile::tempdir().unwrap();
        for key in [
            "authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
        ] {
            let there =
                server_with_changed_metadata(move |described, _| described[key] = json!(page));
            let error = begin_login_at(&there, state.path()).unwrap_err();
            assert!(!error.contains('\u{1b}'), "{error}");
            assert!(
                !there.received_text().contains("/register"),
                "{key} {page}: nothing is sent before: {error}"
            );
        }
    }
}

#[test]
fn login_rejects_a_weak_challenge_method_or_another_issuer() {
    let state = tempfile::tempdir().unwrap();
    let weak = server_with_changed_metadata(|described, _| {
        described["code_challenge_methods_supported"] = json!(["plain"]);
    });
    begin_login_at(&weak, state.path()).unwrap_err();
    for issuer in [
        json!("https://login.example"),
        json!("http://127.0.0.1:1"),
        json!(null),
        json!(7),
    ] {
        let there =
            server_with_changed_metadata(move |described, _| described["issuer"] = issuer.clone());
        let page = begin_login_at(&there, state.path());
        assert!(
            page.is_err() || !there.received_text().contains("/register"),
            "{page:?}"
        );
    }
}

#[test]
fn login_does_not_fetch_metadata_from_the_local_network() {
    for page in [
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/x",
        "http://metadata.google.internal/x",
        "http://[fd00::1]/x",
        "http://0x0a000001/x",
        "file:///etc/passwd",
        "http://[::ffff:10.0.0.1]/x",
    ] {
        let there = Hostile::start(honest_page);
        let state = tempfile::tempdir().unwrap();
        let said = format!("Bearer resource_metadata=\"{page}\"");
        let server = http("s", &there.url());
        let begun = block_on(begin_login(
            &server,
            state.path().join("tokens"),
            Some(&said),
        ));
        // The server's own metadata may still be used.
        if let Ok(begun) = begun {
            assert!(
                begun.url().starts_with(&there.origin),
                "{page}: {}",
                begun.url()
            );
        }
    }
}

#[test]
fn login_masks_and_distrusts_registration_answers() {
    let state = tempfile::tempdir().unwrap();
    let loud = Hostile::start(|origin, asked| match asked.target.as_str() {
        "/register" => (
            "400 Bad Request",
            String::new(),
            format!("\u{1b}]0;owned\u{7}{}", "no! \u{202e}".repeat(50_000)),
        ),
        _ => honest_page(origin, asked),
    });
    let error = begin_login_at(&loud, state.path()).unwrap_err();
    assert!(
        error.chars().count() < 1_000 && !error.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{error}"
    );
    let injecting = Hostile::start(|origin, asked| match asked.target.as_str() {
        "/register" => json_page(
            &json!({ "client_id": "x&redirect_uri=http://evil.example/#", "redirect_uris": ["http://evil.example/"] }),
        ),
        _ => honest_page(origin, asked),
    });
    let page = begin_login_at(&injecting, state.path()).unwrap();
    assert_eq!(page.matches("redirect_uri=").count(), 1, "{page}");
    assert!(
        page.contains("redirect_uri=http%3A%2F%2F127.0.0.1"),
        "{page}"
    );
}

/// Returns the callback address on this machine and the state of the login.
fn callback_and_state(page: &str) -> (String, String) {
    let parameter = |name: &str| {
        page.split(name)
            .nth(1)
            .unwrap()
            .split('&')
            .next()
            .unwrap()
            .to_owned()
    };
    (
        parameter("redirect_uri=")
            .replace("%3A", ":")
            .replace("%2F", "/"),
        parameter("state="),
    )
}

#[test]
fn login_rejects_an_answer_of_another_issuer() {
    for supported in [true, false] {
        let there = server_with_changed_metadata(move |described, _| {
            described["authorization_response_iss_parameter_supported"] = json!(supported);
        });
        let state = tempfile::tempdir().unwrap();
        let error = block_on(async {
            let begun = begin_login(
                &http("s", &there.url()),
                state.path().join("tokens"),
                Some(&challenge(&there)),
            )
            .await;
            let begun = begun.unwrap();
            let (back, own) = callback_and_state(begun.url());
            let visiting = tokio::task::spawn_blocking(move || {
                visit_url(&format!(
                    "{back}?code=stolen&state={own}&iss=https%3A%2F%2Fevil.example"
                ))
            });
            let finished = begun.finish().await;
            visiting.await.unwrap().unwrap();
            finished.unwrap_err()
        });
        assert!(
            !there.received_text().contains("/token") && !there.received_text().contains("stolen"),
            "{error}: {}",
            there.received_text()
        );
    }
}

#[test]
fn login_code_does_not_follow_a_redirect_of_the_token_page() {
    let thief =
        Hostile::start(|_, _| json_page(&json!({ "access_token": "x", "token_type": "Bearer" })));
    let to = thief.origin.clone();
    let there = Hostile::start(move |origin, asked| match asked.target.as_str() {
        "/token" => (
            "307 Temporary Redirect",
            format!("location: {to}/token\r\n"),
            String::new(),
        ),
        _ => honest_page(origin, asked),
    });
    let state = tempfile::tempdir().unwrap();
    block_on(async {
        let begun = begin_login(
            &http("s", &there.url()),
            state.path().join("tokens"),
            Some(&challenge(&there)),
        )
        .await;
        let begun = begun.unwrap();
        let (back, own) = callback_and_state(begun.url());
        let visiting = tokio::task::spawn_blocking(move || {
            visit_url(&format!("{back}?code=mine&state={own}"))
        });
        begun.finish().await.unwrap_err();
        visiting.await.unwrap().unwrap();
    });
    assert!(
        there.received_text().contains("mine"),
        "the code was sent where it belongs"
    );
    assert_eq!(thief.received_text(), "");
}

#[test]
fn login_continues_after_invalid_callbacks() {
    let there = Hostile::start(honest_page);
    let state = tempfile::tempdir().unwrap();
    let page = block_on(async {
        let begun = begin_login(
            &http("s", &there.url()),
            state.path().join("tokens"),
            Some(&challenge(&there)),
        )
        .await;
        let begun = begun.unwrap();
        let page = begun.url().to_owned();
        let (back, own) = callback_and_state(&page);
        let host = back
            .strip_prefix("http://")
            .unwrap()
            .split('/')
            .next()
            .unwrap()
            .to_owned();
        let visiting = tokio::task::spawn_blocking(move || {
            let asks = [
                format!("POST /callback?code=x&state={own} HTTP/1.1\r\n\r\n"),
                format!("HEAD /callback?code=x&state={own} HTTP/1.1\r\n\r\n"),
                format!("GET http://evil.example/callback?code=x&state={own} HTTP/1.1\r\n\r\n"),
                format!("GET /callback/../callback?code=x&state={own} HTTP/1.1\r\n\r\n"),
                format!("GET /callback?code=x#state={own} HTTP/1.1\r\n\r\n"),
                format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000)),
                "\0\u{1}\u{2}\r\n\r\n".to_owned(),
            ];
            for ask in asks {
                let mut visitor = TcpStream::connect(&host).unwrap();
                // The server may close the connection at any time.
                let _ = visitor.write_all(ask.as_bytes());
                let mut answer = Vec::new();
                let _ = visitor.read_to_end(&mut answer);
                let answer = String::from_utf8_lossy(&answer).into_owned();
                assert!(
                    !answer.starts_with("HTTP/1.1 200"),
                    "{}: {answer}",
                    ask.get(..60).unwrap_or(&ask)
                );
            }
        });
        tokio::select! {
            ended = begun.finish() => panic!("a visitor ended it: {ended:?}"),
            visited = visiting => visited.unwrap(),
        }
        page
    });
    assert!(!there.received_text().contains("code=x"), "{page}");
}

fn server_with_key(url: &str) -> ServerDefinition {
    let headers = vec![("x-api-key".to_owned(), "key-of-the-user".to_owned())];
    let reach = ServerEndpoint::Http {
        url: url.to_owned(),
        headers,
        bearer: Some("bearer-of-the-user".to_owned()),
    };
    ServerDefinition {
        endpoint: reach,
        ..http("s", url)
    }
}

#[test]
fn keys_do_not_follow_a_redirect_to_another_host() {
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let thief = Hostile::start(|_, _| ("200 OK", String::new(), String::new()));
        for to in [
            thief.url(),
            thief.url().replace("127.0.0.1", "localhost"),
            "//".to_owned() + &thief.url()[7..],
        ] {
            let there =
                Hostile::start(move |_, _| (status, format!("location: {to}\r\n"), String::new()));
            let state = tempfile::tempdir().unwrap();
            let all = servers(state.path(), vec![server_with_key(&there.url())]);
            let error = block_on(all.refetch_listing("s", &never())).unwrap_err();
            assert!(error.to_string().contains("another host"), "{error}");
            assert!(!error.to_string().contains("of-the-user"), "{error}");
            assert!(
                there.received_text().contains("key-of-the-user"),
                "the server itself is shown it"
            );
        }
        assert_eq!(thief.received_text(), "", "{status}");
    }
}

#[test]
fn redirect_within_the_host_is_followed() {
    let there = Hostile::start(|origin, asked| match asked.target.as_str() {
        "/mcp" => (
            "307 Temporary Redirect",
            format!("location: {origin}/mcp/\r\n"),
            String::new(),
        ),
        _ => ("404 Not Found", String::new(), String::new()),
    });
    let state = tempfile::tempdir().unwrap();
    let all = servers(state.path(), vec![server_with_key(&there.url())]);
    block_on(all.refetch_listing("s", &never())).unwrap_err();
    let heard = there.asked.lock().unwrap().clone();
    assert!(
        heard
            .iter()
            .any(|asked| asked.target == "/mcp/" && asked.head.contains("key-of-the-user")),
        "{heard:?}"
    );
    let round = Hostile::start(|origin, _| {
        (
            "307 Temporary Redirect",
            format!("location: {origin}/mcp\r\n"),
            String::new(),
        )
    });
    let all = servers(state.path(), vec![server_with_key(&round.url())]);
    let error = block_on(all.refetch_listing("s", &never())).unwrap_err();
    assert!(error.to_string().contains("without end"), "{error}");
}

#[test]
fn login_tokens_stay_with_their_server_and_issuer() {
    let there = McpServer::start_with_login(Revision::Previous, 1).unwrap();
    let state = tempfile::tempdir().unwrap();
    let server = http("s", &there.url());
    block_on(async {
        let all = servers(state.path(), vec![server.clone()]);
        let Err(McpError::Login { challenge, .. }) = all.refetch_listing("s", &never()).await
        else {
            panic!("no login")
        };
        let begun = begin_login(&server, state.path().join("tokens"), challenge.as_deref())
            .await
            .unwrap();
        let page = begun.url().to_owned();
        let visiting = tokio::task::spawn_blocking(move || visit_url(&page));
        begun.finish().await.unwrap();
        visiting.await.unwrap().unwrap();
    });
    // The name at another address: the login's tokens are not sent to it.
    let other = Hostile::start(honest_page);
    let elsewhere = servers(state.path(), vec![http("s", &other.url())]);
    assert!(!elsewhere.has_login("s"));
    block_on(elsewhere.refetch_listing("s", &never())).unwrap_err();
    assert!(
        !other.received_text().contains("access-") && !other.received_text().contains("refresh-"),
        "{}",
        other.received_text()
    );
    // The token file is renamed for the other address: its tokens belong to another issuer.
    let files: Vec<_> = std::fs::read_dir(state.path().join("tokens"))
        .unwrap()
        .flatten()
        .collect();
    let own = files
        .iter()
        .find(|file| file.path().extension().is_some_and(|kind| kind == "json"))
        .unwrap()
        .path();
    let planted = tempfile::tempdir().unwrap();
    let victim = servers(planted.path(), vec![http("s", &other.url())]);
    std::fs::create_dir_all(planted.path().join("tokens")).unwrap();
    let name = format!(
        "s-{}.json",
        &blake3::hash(other.url().as_bytes()).to_hex().as_str()[..16]
    );
    std::fs::copy(own, planted.path().join("tokens").join(name)).unwrap();
    assert!(victim.has_login("s"));
    block_on(victim.refetch_listing("s", &never())).unwrap_err();
    assert!(
        !other.received_text().contains("access-") && !other.received_text().contains("refresh-"),
        "{}",
        other.received_text()
    );
}
