//! Tests of logins: only the right callback completes one, and its tokens are private and renewed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use haft_mcp::{McpError, ServerDefinition, begin_login};
use haft_testkit::support::{McpServer, Revision, visit_url};
use tokio_util::sync::CancellationToken;

use crate::{block_on, http, servers};

fn never() -> CancellationToken {
    CancellationToken::new()
}

/// Returns the server's challenge to a request without a token.
async fn challenge(state: &Path, server: &ServerDefinition) -> String {
    match servers(state, vec![server.clone()])
        .refetch_listing(&server.name, &never())
        .await
    {
        Err(McpError::Login {
            challenge: Some(challenge),
            ..
        }) => challenge,
        other => panic!("{other:?}"),
    }
}

/// Logs in; `back` computes the address the user returns to from the login page.
async fn log_in(
    state: &Path,
    server: &ServerDefinition,
    back: fn(&str) -> String,
) -> Result<(), String> {
    let challenge = challenge(state, server).await;
    let begun = begin_login(server, state.join("tokens"), Some(&challenge)).await?;
    let page = back(begun.url());
    let visiting = tokio::task::spawn_blocking(move || visit_url(&page));
    let finished = begun.finish().await;
    visiting.await.unwrap().unwrap();
    finished
}

fn token_files(state: &Path) -> Vec<(String, u32)> {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = state.join("tokens");
    let inside = fs::read_dir(&folder).into_iter().flatten().flatten();
    let inside = inside.map(|entry| {
        (
            entry.file_name().to_string_lossy().into_owned(),
            mode(&entry.path()),
        )
    });
    // Each file may have a lock beside it, which serializes its renewal.
    inside.filter(|(name, _)| !name.contains("lock")).collect()
}

#[test]
fn login_opens_the_server_with_private_tokens() {
    for revision in [Revision::Current, Revision::Previous] {
        let state = tempfile::tempdir().unwrap();
        let there = McpServer::start_with_login(revision, 3_600).unwrap();
        let server = http("s", &there.url());
        block_on(async {
            log_in(state.path(), &server, str::to_owned).await.unwrap();
            let all = servers(state.path(), vec![server.clone()]);
            assert!(all.has_login("s"));
            all.refetch_listing("s", &never()).await.unwrap();
        });
        assert_eq!(there.grants(), ["authorization_code"]);
        let kept = token_files(state.path());
        assert!(matches!(kept.as_slice(), [(_, 0o600)]), "{kept:?}");
        let folder = fs::metadata(state.path().join("tokens"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(folder & 0o777, 0o700);
    }
}

#[test]
fn login_token_is_renewed_when_expired() {
    let state = tempfile::tempdir().unwrap();
    let there = McpServer::start_with_login(Revision::Previous, 1).unwrap();
    let server = http("s", &there.url());
    block_on(async {
        log_in(state.path(), &server, str::to_owned).await.unwrap();
        // A new process each time; a refresh token works once.
        for _ in 0..2 {
            servers(state.path(), vec![server.clone()])
                .refetch_listing("s", &never())
                .await
                .unwrap();
        }
    });
    let grants = there.grants();
    assert_eq!(grants[0], "authorization_code");
    assert!(
        grants.len() > 2 && grants[1..].iter().all(|grant| grant == "refresh_token"),
        "{grants:?}"
    );
    let kept = token_files(state.path());
    assert!(matches!(kept.as_slice(), [(_, 0o600)]), "{kept:?}");
}

/// Returns the value of a parameter of a page's address.
fn parameter<'a>(page: &'a str, name: &str) -> &'a str {
    page.split(name).nth(1).unwrap().split('&').next().unwrap()
}

/// Returns the callback address on this machine.
fn callback(page: &str) -> String {
    parameter(page, "redirect_uri=")
        .replace("%3A", ":")
        .replace("%2F", "/")
}

#[test]
fn login_stores_no_tokens_when_refused() {
    let refused: fn(&str) -> String = |page| {
        format!(
            "{}?error=access_denied&state={}",
            callback(page),
            parameter(page, "state=")
        )
    };
    let state = tempfile::tempdir().unwrap();
    let there = McpServer::start_with_login(Revision::Previous, 3_600).unwrap();
    let server = http("s", &there.url());
    let error = block_on(log_in(state.path(), &server, refused)).unwrap_err();
    assert!(
        error.contains("the server refused: access_denied"),
        "{error}"
    );
    assert!(
        token_files(state.path()).is_empty() && there.grants().is_empty(),
        "{error}"
    );
}

#[test]
fn login_survives_strangers_and_silent_visitors() {
    let state = tempfile::tempdir().unwrap();
    let there = McpServer::start_with_login(Revision::Previous, 3_600).unwrap();
    let server = http("s", &there.url());
    block_on(async {
        let challenge = challenge(state.path(), &server).await;
        let begun = begin_login(&server, state.path().join("tokens"), Some(&challenge))
            .await
            .unwrap();
        let page = begun.url().to_owned();
        let visiting = tokio::task::spawn_blocking(move || {
            let address = callback(&page);
            let host = address
                .strip_prefix("http://")
                .unwrap()
                .split('/')
                .next()
                .unwrap()
                .to_owned();
            // More silent connections than are accepted at once.
            let silent: Vec<_> = (0..100)
                .map(|_| std::net::TcpStream::connect(&host).unwrap())
                .collect();
            let own = parameter(&page, "state=");
            let wrong = [
                "code=x".to_owned(),
                "code=x&state=".to_owned(),
                "code=x&state=other".to_owned(),
                format!("code=x&state={own}x"),
                format!("code=x&state=other&state={own}"),
                format!("code=x&state={own}&state=other"),
                "error=access_denied".to_owned(),
                "error=access_denied&state=other".to_owned(),
            ];
            for query in wrong {
                let words = visit_url(&format!("{address}?{query}")).unwrap();
                assert!(
                    words.contains("not the login haft waits for"),
                    "{query}: {words}"
                );
            }
            assert_eq!(
                visit_url(&address.replace("/callback", "/favicon.ico")).unwrap(),
                ""
            );
            let words = visit_url(&page).unwrap();
            drop(silent);
            words
        });
        begun.finish().await.unwrap();
        assert!(visiting.await.unwrap().contains("has logged in"));
    });
    assert_eq!(there.grants(), ["authorization_code"]);
}
