//! Logging in to a server: the user visits a page, and comes back to an address of this machine.
//!
//! Everybody on this machine can visit that address. Invariant: only who brings the state that this
//! login was begun with ends it, and nobody holds it up, however many come and however little they
//! say.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::sdk::{Authorization, TokenStore};
use crate::server::ServerDefinition;

/// The longest request that is looked at.
const LONGEST: usize = 16 * 1024;
/// How long a visitor may take to say what it wants, and to be answered.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many visitors may be there at once; one more, and the first of them is sent away.
const VISITORS: usize = 64;
const STRANGER: &str = "This is not the login haft waits for. Go back to the page haft named.";
const DONE: &str = "haft has logged in. You can close this page.";
const REFUSED: &str = "haft could not log in. The terminal says why.";

/// A login that waits for the user.
pub struct Login {
    authorization: Authorization,
    listener: TcpListener,
    redirect: String,
}

/// Begins to log in: finds the authorization server, registers haft there if needed, and makes the
/// page's address. Tokens will be kept in `tokens`. `challenge` is what came with
/// [`McpError::Login`](crate::McpError::Login). The error is a reason as text.
pub async fn login(
    server: &ServerDefinition,
    tokens: PathBuf,
    challenge: Option<&str>,
) -> Result<Login, String> {
    let listen = async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        Ok::<_, io::Error>((listener, format!("http://127.0.0.1:{port}/callback")))
    };
    let (listener, redirect) = listen
        .await
        .map_err(|error| format!("cannot listen on this machine: {error}"))?;
    let authorization =
        Authorization::begin(server, &TokenStore::at(tokens), &redirect, challenge).await?;
    Ok(Login {
        authorization,
        listener,
        redirect,
    })
}

impl Login {
    /// The page the user has to visit.
    pub fn url(&self) -> &str {
        self.authorization.url()
    }

    /// Waits until the user comes back, and keeps the tokens. The error is a reason as text.
    pub async fn finish(self) -> Result<(), String> {
        let (came, mut callbacks) = mpsc::channel(VISITORS);
        let mut visits = Visits::default();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (visitor, _) = accepted.map_err(|error| error.to_string())?;
                    visits.add(visitor, came.clone());
                }
                Some((mut visitor, query)) = callbacks.recv() => {
                    if !self.authorization.began(&self.callback(&query)) {
                        visits.answer(visitor, "400 Bad Request", STRANGER);
                        continue;
                    }
                    let outcome = self.came_back(&query).await;
                    let text = if outcome.is_ok() { DONE } else { REFUSED };
                    let _ = tokio::time::timeout(PATIENCE, answer(&mut visitor, "200 OK", text)).await;
                    return outcome;
                }
            }
        }
    }

    /// The address of this machine with what a visitor brings.
    fn callback(&self, query: &str) -> String {
        format!("{}?{query}", self.redirect)
    }

    async fn came_back(&self, query: &str) -> Result<(), String> {
        let given = |key: &str| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
        };
        if let Some(error) = given("error") {
            return Err(format!(
                "the server refused: {}",
                haft_text::sanitise(error)
            ));
        }
        self.authorization.finish(&self.callback(query)).await
    }
}

/// Those who are listened to or answered, the first who came first. Dropping it ends them.
#[derive(Default)]
struct Visits(VecDeque<AbortHandle>);

impl Visits {
    /// Listens to a visitor, who is passed on with the query of the callback; others are sent away.
    fn add(&mut self, mut visitor: TcpStream, came: mpsc::Sender<(TcpStream, String)>) {
        self.keep(async move {
            match callback(&mut visitor).await {
                Ok(Some(query)) => drop(came.send((visitor, query)).await),
                // A browser asks for pictures and the like.
                Ok(None) | Err(_) => drop(answer(&mut visitor, "404 Not Found", "").await),
            }
        });
    }

    fn answer(&mut self, mut visitor: TcpStream, status: &'static str, text: &'static str) {
        self.keep(async move { drop(answer(&mut visitor, status, text).await) });
    }

    fn keep(&mut self, visit: impl Future<Output = ()> + Send + 'static) {
        self.0.retain(|visit| !visit.is_finished());
        if self.0.len() >= VISITORS
            && let Some(first) = self.0.pop_front()
        {
            first.abort();
        }
        let timed = async { drop(tokio::time::timeout(PATIENCE, visit).await) };
        self.0.push_back(tokio::spawn(timed).abort_handle());
    }
}

impl Drop for Visits {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// The query of a request for the callback; none for any other.
async fn callback(visitor: &mut TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    // All of it: a connection that is closed with something unread in it is broken off, answer and
    // all.
    while !head.ends_with(b"\r\n\r\n") && head.len() < LONGEST {
        let mut chunk = [0; 1024];
        match visitor.read(&mut chunk).await? {
            0 => break,
            read => head.extend_from_slice(&chunk[..read]),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let target = head
        .strip_prefix("GET ")
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .unwrap_or_default();
    Ok(target.strip_prefix("/callback?").map(str::to_owned))
}

async fn answer(visitor: &mut TcpStream, status: &str, text: &str) -> io::Result<()> {
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    visitor.write_all(page.as_bytes()).await?;
    visitor.shutdown().await
}
