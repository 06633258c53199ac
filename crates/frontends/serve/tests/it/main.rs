//! The site as clients see it: access, and the headers of every response.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::sync::Arc;

use async_trait::async_trait;
use haft_serve::{
    AccessToken, FormAnswer, FormFields, Markup, PageRequest, Site, SiteImage, build_html_document,
    serve,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct OnePage;

#[async_trait]
impl Site for OnePage {
    async fn page(&self, request: &PageRequest) -> Result<Option<String>, String> {
        match request.path.first().map(String::as_str) {
            None => Ok(Some(build_html_document(
                "en",
                "secret page",
                Markup::text("the secret"),
            ))),
            Some("broken") => Err("<script>no</script>".to_owned()),
            Some(_) => Ok(None),
        }
    }

    async fn image(&self, request: &PageRequest) -> Option<SiteImage> {
        let kind = if request.path.len() > 1 {
            "image/png"
        } else {
            "image/svg+xml"
        };
        SiteImage::new(kind, b"a picture".to_vec())
    }

    async fn post(
        &self,
        request: &PageRequest,
        form: &FormFields,
    ) -> Result<Option<FormAnswer>, String> {
        match request.path.first().map(String::as_str) {
            None => Ok(Some(FormAnswer::Page(build_html_document(
                "en",
                "done",
                Markup::text(form.get("text")),
            )))),
            Some("see") => Ok(Some(FormAnswer::Redirect("/".to_owned()))),
            Some(_) => Ok(None),
        }
    }

    async fn version(&self, _: &PageRequest) -> Option<String> {
        Some("1".to_owned())
    }

    fn style(&self) -> String {
        "body {}".to_owned()
    }
}

const TOKEN: &str = "5ecret5ecret5ecret5ecret";

async fn start_site() -> u16 {
    start_site_with(AccessToken::new(TOKEN.to_owned())).await
}

async fn start_site_with(access: AccessToken) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(serve(
        listener,
        Arc::new(OnePage),
        access,
        std::future::pending(),
    ));
    port
}

/// Sends a request with these header lines, and returns the response up to `until` or its end.
async fn send_request(port: u16, line: &str, headers: &str, until: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("{line} HTTP/1.1\r\n{headers}connection: close\r\n\r\n")
        .replace("PORT", &port.to_string());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while stream.read_buf(&mut answer).await.unwrap() > 0 {
        if !until.is_empty() && String::from_utf8_lossy(&answer).contains(until) {
            break;
        }
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn token_address_sets_the_cookie_that_opens_the_page() {
    let port = start_site().await;
    let first = send_request(
        port,
        &format!("GET /?token={TOKEN}"),
        "host: 127.0.0.1:PORT\r\n",
        "",
    )
    .await;
    assert!(
        first.starts_with("HTTP/1.1 303 ") && first.contains("location: /\r\n"),
        "{first}"
    );
    let cookie = format!("set-cookie: haft_{port}={TOKEN}; HttpOnly; SameSite=Strict; Path=/\r\n");
    assert!(first.contains(&cookie), "{first}");
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let headers = format!("host: {host}:PORT\r\ncookie: other=1; haft_PORT={TOKEN}\r\n");
        let page = send_request(port, "GET /", &headers, "").await;
        assert!(
            page.starts_with("HTTP/1.1 200 ") && page.contains("the secret"),
            "{page}"
        );
    }
    let headers = format!(
        "host: localhost:PORT\r\norigin: http://localhost:PORT\r\ncookie: haft_PORT={TOKEN}\r\n"
    );
    assert!(
        send_request(port, "GET /style.css", &headers, "")
            .await
            .starts_with("HTTP/1.1 200 ")
    );
    assert!(
        send_request(port, "GET /events?path=/", &headers, "data: 1")
            .await
            .contains("text/event-stream")
    );
    assert!(
        send_request(port, "GET /nothing", &headers, "")
            .await
            .starts_with("HTTP/1.1 404 ")
    );
    let picture = send_request(port, "GET /image/1", &headers, "").await;
    assert!(
        picture.starts_with("HTTP/1.1 200 ") && picture.contains("content-type: image/png"),
        "{picture}"
    );
    assert!(
        send_request(port, "GET /image", &headers, "")
            .await
            .starts_with("HTTP/1.1 404 "),
        "it could hold a script"
    );
    let broken = send_request(port, "GET /broken", &headers, "").await;
    assert!(
        broken.starts_with("HTTP/1.1 500 ") && broken.contains("text/plain"),
        "{broken}"
    );
}

#[tokio::test]
async fn ticket_opens_the_site_once() {
    const TICKET: &str = "t1cket";
    let access = AccessToken::new(TOKEN.to_owned());
    access.issue_ticket(TICKET.to_owned());
    let port = start_site_with(access.clone()).await;
    let own = "host: 127.0.0.1:PORT\r\n";
    for (request, headers, status) in [
        ("GET /?ticket=wrong", own.to_owned(), 401),
        ("GET /?token=t1cket", own.to_owned(), 401),
        ("HEAD /?ticket=t1cket", own.to_owned(), 401),
        (
            "GET /?ticket=t1cket",
            "host: evil.example\r\n".to_owned(),
            421,
        ),
        (
            "GET /?ticket=t1cket",
            format!("{own}origin: http://evil.example\r\n"),
            403,
        ),
        (
            "POST /?ticket=t1cket",
            format!("{own}origin: http://127.0.0.1:PORT\r\n"),
            401,
        ),
    ] {
        let answer = send_request(port, request, &headers, "").await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {answer}"
        );
        assert!(!answer.contains("set-cookie"), "{request}: {answer}");
    }
    let visit = send_request(port, &format!("GET /c/1?ticket={TICKET}"), own, "").await;
    assert!(visit.starts_with("HTTP/1.1 200 "), "{visit}");
    assert!(
        visit.contains(&format!(
            "set-cookie: haft_{port}={TOKEN}; HttpOnly; SameSite=Strict"
        )),
        "{visit}"
    );
    assert!(
        visit.contains("http-equiv=\"refresh\" content=\"0; url=/c/1\"") && !visit.contains(TICKET),
        "{visit}"
    );
    access.wait_for_redemption().await;
    let again = send_request(port, &format!("GET /?ticket={TICKET}"), own, "").await;
    assert!(again.starts_with("HTTP/1.1 401 "), "{again}");
    access.issue_ticket("another".to_owned());
    access.revoke_ticket();
    let revoked = send_request(port, "GET /?ticket=another", own, "").await;
    assert!(revoked.starts_with("HTTP/1.1 401 "), "{revoked}");
}

#[tokio::test]
async fn requests_without_access_are_refused() {
    let port = start_site().await;
    let cookie = format!("cookie: haft_PORT={TOKEN}\r\n");
    let own = "host: 127.0.0.1:PORT\r\n";
    let table = [
        ("no token", "GET /", own.to_owned(), 401),
        (
            "no token for the style",
            "GET /style.css",
            own.to_owned(),
            401,
        ),
        (
            "no token for events",
            "GET /events?path=/",
            own.to_owned(),
            401,
        ),
        (
            "no token for a picture",
            "GET /image/1",
            own.to_owned(),
            401,
        ),
        ("a wrong token", "GET /?token=5ecret", own.to_owned(), 401),
        (
            "a wrong cookie",
            "GET /",
            format!("{own}cookie: haft_PORT=5ecret\r\n"),
            401,
        ),
        (
            "the cookie of another port",
            "GET /",
            format!("{own}cookie: haft_1={TOKEN}\r\n"),
            401,
        ),
        (
            "a name bound to this machine",
            "GET /",
            format!("host: evil.example:PORT\r\n{cookie}"),
            421,
        ),
        (
            "the same with the token",
            &format!("GET /?token={TOKEN}"),
            "host: evil.example\r\n".to_owned(),
            421,
        ),
        (
            "a host that begins alike",
            "GET /",
            format!("host: 127.0.0.1.evil.example:PORT\r\n{cookie}"),
            421,
        ),
        (
            "another port",
            "GET /",
            format!("host: 127.0.0.1:1\r\n{cookie}"),
            421,
        ),
        ("no host at all", "GET /", cookie.clone(), 421),
        (
            "another page",
            "GET /",
            format!("{own}origin: http://evil.example\r\n{cookie}"),
            403,
        ),
        (
            "a page without a name",
            "GET /",
            format!("{own}origin: null\r\n{cookie}"),
            403,
        ),
        (
            "another port of this machine",
            "GET /",
            format!("{own}origin: http://127.0.0.1:1\r\n{cookie}"),
            403,
        ),
        (
            "a form of another page",
            "POST /",
            format!("{own}origin: http://evil.example\r\n{cookie}"),
            403,
        ),
        ("a form of nobody", "POST /", format!("{own}{cookie}"), 403),
        (
            "a form of a page without a name",
            "POST /",
            format!("{own}origin: null\r\n{cookie}"),
            403,
        ),
        (
            "a form with the token of the address",
            &format!("POST /?token={TOKEN}"),
            format!("{own}origin: http://127.0.0.1:PORT\r\n"),
            401,
        ),
        (
            "a form under another name",
            "POST /",
            format!("host: evil.example:PORT\r\norigin: http://evil.example:PORT\r\n{cookie}"),
            421,
        ),
        ("a change", "DELETE /", format!("{own}{cookie}"), 405),
    ];
    for (who, line, headers, status) in table {
        let answer = send_request(port, line, &headers, "").await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{who}: {answer}"
        );
        assert!(
            !answer.contains("the secret") && !answer.contains("set-cookie"),
            "{who}: {answer}"
        );
    }
}

/// Posts a form of this content type from a page of the site, with the cookie, and returns the
/// response.
async fn post_form(port: u16, path: &str, kind: &str, form: &str) -> String {
    let headers = format!(
        "host: localhost:PORT\r\norigin: http://localhost:PORT\r\ncookie: haft_PORT={TOKEN}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n",
        form.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("POST {path} HTTP/1.1\r\n{headers}connection: close\r\n\r\n{form}");
    // A server that refuses a form need not read it to its end.
    let _ = stream
        .write_all(request.replace("PORT", &port.to_string()).as_bytes())
        .await;
    let mut answer = Vec::new();
    while stream
        .read_buf(&mut answer)
        .await
        .is_ok_and(|read| read > 0)
    {}
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn forms_need_the_form_token_of_the_site() {
    const FORM: &str = "application/x-www-form-urlencoded";
    let port = start_site().await;
    let token = AccessToken::new(TOKEN.to_owned()).form_token();
    assert!(
        !token.contains(TOKEN),
        "whoever sees a form does not see the cookie"
    );
    let good = format!("form_token={token}&text=%3Cscript%3Ealert(1)%3C/script%3E");
    let taken = post_form(port, "/", FORM, &good).await;
    assert!(
        taken.starts_with("HTTP/1.1 200 ") && taken.contains("&lt;script&gt;alert(1)"),
        "{taken}"
    );
    let seen = post_form(port, "/see", &format!("{FORM}; charset=utf-8"), &good).await;
    assert!(
        seen.starts_with("HTTP/1.1 303 ") && seen.contains("location: /\r\n"),
        "{seen}"
    );
    let large = post_form(
        port,
        "/",
        FORM,
        &format!("{good}&more={}", "x".repeat(2 << 20)),
    )
    .await;
    assert!(!large.starts_with("HTTP/1.1 2"), "{large}");
    for (who, path, kind, form, status) in [
        ("no token", "/", FORM, "text=x".to_owned(), 403),
        (
            "the token of the address",
            "/",
            FORM,
            format!("form_token={TOKEN}&text=x"),
            403,
        ),
        ("a text", "/", "text/plain", good.clone(), 415),
        (
            "what a page elsewhere could send without asking",
            "/",
            "multipart/form-data",
            good.clone(),
            415,
        ),
        (
            "a form that is not there",
            "/other",
            FORM,
            good.clone(),
            404,
        ),
    ] {
        let answer = post_form(port, path, kind, &form).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{who}: {answer}"
        );
    }
}

#[tokio::test]
async fn responses_have_a_strict_content_security_policy() {
    let port = start_site().await;
    let cookie = format!("host: localhost:PORT\r\ncookie: haft_PORT={TOKEN}\r\n");
    for (path, headers) in [
        ("/", &cookie),
        ("/live.js", &cookie),
        ("/nothing", &cookie),
        ("/", &String::new()),
    ] {
        let answer = send_request(port, &format!("GET {path}"), headers, "")
            .await
            .to_ascii_lowercase();
        for needed in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "nosniff",
            "referrer-policy: same-origin",
            "no-store",
            "same-origin",
        ] {
            assert!(answer.contains(needed), "{path} without {needed}: {answer}");
        }
        assert!(!answer.contains("unsafe-inline"), "{answer}");
    }
}
