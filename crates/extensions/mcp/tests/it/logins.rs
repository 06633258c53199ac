//! Logging in: who begins a login ends it, and what it gives is private and renewed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use haft_mcp::{McpError, ServerDefinition, login};
use haft_testkit::test::{McpServer, Revision, visit};
use tokio_util::sync::CancellationToken;

use crate::{block_on, http, servers};

fn never() -> CancellationToken {
    CancellationToken::new()
}

/// What the server says to strangers.
async fn challenge(state: &Path, server: &ServerDefinition) -> String {
    match servers(state, vec![server.clone()]).ask_anew(&server.name, &never()).await {
        Err(McpError::Login { challenge: Some(challenge), .. }) => challenge,
        other => panic!("{other:?}"),
    }
}

/// Logs in; `back` makes the address the person comes back to from the right one.
async fn log_in(state: &Path, server: &ServerDefinition, back: fn(&str) -> String) -> Result<(), String> {
    let challenge = challenge(state, server).await;
    let begun = login(server, state.join("tokens"), Some(&challenge)).await?;
    let page = back(begun.url());
    let visiting = tokio::task::spawn_blocking(move || visit(&page));
    let finished = begun.finish().await;
    visiting.await.unwrap().unwrap();
    finished
}

fn files(state: &Path) -> Vec<(String, u32)> {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = state.join("tokens");
    let inside = fs::read_dir(&folder).into_iter().flatten().flatten();
    let inside = inside.map(|entry| (entry.file_name().to_string_lossy().into_owned(), mode(&entry.path())));
    // Beside each there may be the lock under which it is renewed.
    inside.filter(|(name, _)| !name.contains("lock")).collect()
}

#[test]
fn a_login_opens_the_server_and_its_tokens_are_private() {
    for revision in [Revision::Current, Revision::Previous] {
        let (state, there) = (tempfile::tempdir().unwrap(), McpServer::start_with_login(revision, 3_600).unwrap());
        let server = http("s", &there.url());
        block_on(async {
            log_in(state.path(), &server, str::to_owned).await.unwrap();
            let all = servers(state.path(), vec![server.clone()]);
            assert!(all.has_login("s"));
            all.ask_anew("s", &never()).await.unwrap();
        });
        assert_eq!(there.grants(), ["authorization_code"]);
        let kept = files(state.path());
        assert!(matches!(kept.as_slice(), [(_, 0o600)]), "{kept:?}");
        let folder = fs::metadata(state.path().join("tokens")).unwrap().permissions().mode();
        assert_eq!(folder & 0o777, 0o700);
    }
}

#[test]
fn a_token_that_is_over_is_renewed_and_the_new_one_is_kept() {
    let (state, there) = (tempfile::tempdir().unwrap(), McpServer::start_with_login(Revision::Previous, 1).unwrap());
    let server = http("s", &there.url());
    block_on(async {
        log_in(state.path(), &server, str::to_owned).await.unwrap();
        // Each time as a process of its own; a refresh token is good once.
        for _ in 0..2 {
            servers(state.path(), vec![server.clone()]).ask_anew("s", &never()).await.unwrap();
        }
    });
    let grants = there.grants();
    assert_eq!(grants[0], "authorization_code");
    assert!(grants.len() > 2 && grants[1..].iter().all(|grant| grant == "refresh_token"), "{grants:?}");
    let kept = files(state.path());
    assert!(matches!(kept.as_slice(), [(_, 0o600)]), "{kept:?}");
}

#[test]
fn a_login_that_somebody_else_began_or_that_is_refused_gives_nothing() {
    let foreign: fn(&str) -> String = |page| page.replacen("state=", "state=other", 1);
    let refused: fn(&str) -> String = |page| {
        let redirect = page.split("redirect_uri=").nth(1).unwrap().split('&').next().unwrap();
        format!("{}?error=access_denied", redirect.replace("%3A", ":").replace("%2F", "/"))
    };
    for (back, words) in [(foreign, ""), (refused, "the server refused: access_denied")] {
        let (state, there) =
            (tempfile::tempdir().unwrap(), McpServer::start_with_login(Revision::Previous, 3_600).unwrap());
        let server = http("s", &there.url());
        let error = block_on(log_in(state.path(), &server, back)).unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(files(state.path()).is_empty() && there.grants().is_empty(), "{error}");
    }
}
