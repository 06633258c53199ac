//! Logs in to a server: the user visits the authorization page, which redirects the browser to a
//! local URL.
//!
//! Invariant: only a request with the state of this login ends it. All users of this machine can
//! connect to the local URL, but no number of slow connections delays the login.

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

/// The maximum size of an HTTP request to the callback server, in bytes.
const MAX_REQUEST_BYTES: usize = 16 * 1024;
/// The time limit for reading an HTTP request, and also for answering it.
const VISIT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of open connections. A further connection closes the oldest one.
const MAX_VISITORS: usize = 64;
const WRONG_STATE_TEXT: &str =
    "This is not the login haft waits for. Go back to the page haft named.";
const SUCCESS_TEXT: &str = "haft has logged in. You can close this page.";
const FAILURE_TEXT: &str = "haft could not log in. The terminal says why.";

/// A login to an MCP server that has been begun and waits for the user to visit the authorization
/// page.
pub struct Login {
    authorization: Authorization,
    listener: TcpListener,
    redirect: String,
}

/// Begins a login: finds the authorization server, registers haft there if needed, and builds the
/// URL of the page. Tokens will be stored in the folder `tokens`. `challenge` comes from
/// [`McpError::Login`](crate::McpError::Login). The error is a text for the user.
pub async fn begin_login(
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
        Authorization::begin(server, &TokenStore::new(tokens), &redirect, challenge).await?;
    Ok(Login {
        authorization,
        listener,
        redirect,
    })
}

impl Login {
    /// Returns the URL of the page that the user has to visit.
    pub fn url(&self) -> &str {
        self.authorization.url()
    }

    /// Waits for the redirect and stores the tokens. The error is a text for the user.
    pub async fn finish(self) -> Result<(), String> {
        let (callback_sender, mut callbacks) = mpsc::channel(MAX_VISITORS);
        let mut visits = Visits::default();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (visitor, _) = accepted.map_err(|error| error.to_string())?;
                    visits.spawn_request_reader(visitor, callback_sender.clone());
                }
                Some((mut visitor, query)) = callbacks.recv() => {
                    if !self.authorization.matches_state(&self.callback_url(&query)) {
                        visits.send_answer(visitor, "400 Bad Request", WRONG_STATE_TEXT);
                        continue;
                    }
                    let outcome = self.finish_callback(&query).await;
                    let text = if outcome.is_ok() { SUCCESS_TEXT } else { FAILURE_TEXT };
                    let _ = tokio::time::timeout(VISIT_TIMEOUT, write_answer(&mut visitor, "200 OK", text)).await;
                    return outcome;
                }
            }
        }
    }

    /// Returns the complete callback URL, ending with `query` as its query string.
    fn callback_url(&self, query: &str) -> String {
        format!("{}?{query}", self.redirect)
    }

    async fn finish_callback(&self, query: &str) -> Result<(), String> {
        let error = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("error="));
        if let Some(error) = error {
            return Err(format!(
                "the server refused: {}",
                haft_text::sanitize(error)
            ));
        }
        self.authorization.finish(&self.callback_url(query)).await
    }
}

/// The open connections, oldest first. Dropping this value closes the connections.
#[derive(Default)]
struct Visits(VecDeque<AbortHandle>);

impl Visits {
    /// Starts a task that reads an HTTP request from `visitor`. If the request is a callback, the
    /// connection and the query go to `callback_sender`; otherwise the answer is 404.
    fn spawn_request_reader(
        &mut self,
        mut visitor: TcpStream,
        callback_sender: mpsc::Sender<(TcpStream, String)>,
    ) {
        self.spawn_visit(async move {
            match read_callback_query(&mut visitor).await {
                Ok(Some(query)) => drop(callback_sender.send((visitor, query)).await),
                // Browsers request an icon and other files on their own.
                Ok(None) | Err(_) => drop(write_answer(&mut visitor, "404 Not Found", "").await),
            }
        });
    }

    fn send_answer(&mut self, mut visitor: TcpStream, status: &'static str, text: &'static str) {
        self.spawn_visit(async move { drop(write_answer(&mut visitor, status, text).await) });
    }

    fn spawn_visit(&mut self, visit: impl Future<Output = ()> + Send + 'static) {
        self.0.retain(|visit| !visit.is_finished());
        if self.0.len() >= MAX_VISITORS
            && let Some(first) = self.0.pop_front()
        {
            first.abort();
        }
        let timed = async { drop(tokio::time::timeout(VISIT_TIMEOUT, visit).await) };
        self.0.push_back(tokio::spawn(timed).abort_handle());
    }
}

impl Drop for Visits {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// Reads a request and returns the query if the request is a callback.
async fn read_callback_query(visitor: &mut TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    // The head has to be read completely: closing a connection with unread data resets it, and the
    // browser would lose the answer.
    while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_REQUEST_BYTES {
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

async fn write_answer(visitor: &mut TcpStream, status: &str, text: &str) -> io::Result<()> {
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    visitor.write_all(page.as_bytes()).await?;
    visitor.shutdown().await
}
