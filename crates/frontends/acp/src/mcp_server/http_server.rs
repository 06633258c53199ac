//! Serves tasks over HTTP. Requests need the bearer token, a host name of this server, and no
//! foreign origin.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::handler::TaskHandler;
use super::tasks::DelegatedTasks;

/// The maximum size of a request body, in bytes.
const MAX_BODY_BYTES: usize = 16 << 20;
/// The URL path of the MCP endpoint.
const PATH: &str = "/mcp";

/// The listener of the HTTP server, and the token that its clients must send.
pub struct HttpAccess {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

impl HttpAccess {
    /// Creates access for clients that connect to `listener` and send `token`, which must be hard
    /// to guess.
    pub fn new(listener: TcpListener, token: String) -> std::io::Result<Self> {
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            token,
        })
    }

    /// Returns the URL of the MCP endpoint, to which clients connect.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Returns the `host:port` names that requests may use. Other names that resolve to this
    /// address are rejected, which prevents DNS rebinding.
    fn allowed_hosts(&self) -> Vec<String> {
        let port = self.address.port();
        let own = self.address.to_string();
        if self.address.ip().is_loopback() {
            let names = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
            names.into_iter().chain([own]).collect()
        } else {
            vec![own]
        }
    }

    fn build_service(
        &self,
        tasks: Arc<DelegatedTasks>,
    ) -> StreamableHttpService<TaskHandler, LocalSessionManager> {
        let names = self.allowed_hosts();
        let config = StreamableHttpServerConfig::default()
            .with_allowed_origins(names.iter().map(|name| format!("http://{name}")))
            .with_allowed_hosts(names)
            .enforce_origin_validation()
            .with_cancellation_token(tasks.shutdown.clone())
            .with_max_request_body_bytes(MAX_BODY_BYTES);
        let handler = move || Ok(TaskHandler::new(Arc::clone(&tasks)));
        StreamableHttpService::new(handler, Arc::default(), config)
    }
}

/// Accepts and serves connections until the future is dropped.
pub(super) async fn serve_connections(access: HttpAccess, tasks: Arc<DelegatedTasks>) {
    let service = access.build_service(tasks);
    let token: Arc<str> = access.token.into();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = access.listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            // Accepting fails if there are no file descriptors left or the client has disconnected.
            // Both may be over soon.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let service = service.clone();
        let token = Arc::clone(&token);
        connections.spawn(async move {
            let answer = service_fn(|request: Request<Incoming>| {
                let service = service.clone();
                let token = Arc::clone(&token);
                async move {
                    Ok::<_, Infallible>(match rejection_response(&request, &token) {
                        Some(refused) => refused,
                        None => handle_request(&service, request).await,
                    })
                }
            });
            // A broken connection needs no handling.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

type HttpBody = BoxBody<Bytes, Infallible>;

/// Answers an acceptable request. A request to end a session is answered with 204, because clients
/// report the library's status 202 as a failure.
async fn handle_request(
    service: &StreamableHttpService<TaskHandler, LocalSessionManager>,
    request: Request<Incoming>,
) -> Response<HttpBody> {
    let ends_session = request.method() == Method::DELETE;
    let mut response = service.handle(request).await;
    if ends_session && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

/// Returns the error response to a request that lacks the token or has a wrong path, or `None` if
/// the request is acceptable.
fn rejection_response(request: &Request<Incoming>, token: &str) -> Option<Response<HttpBody>> {
    if !is_authorized(request.headers(), token) {
        let mut response = text_response(
            StatusCode::UNAUTHORIZED,
            "the bearer token that `haft mcp serve` was given is wanted\n",
        );
        response
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Some(response);
    }
    (request.uri().path() != PATH)
        .then(|| text_response(StatusCode::NOT_FOUND, "only /mcp is served\n"))
}

fn text_response(status: StatusCode, text: &'static str) -> Response<HttpBody> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

/// True if the request carries the token. Every byte is compared, so the duration of the comparison
/// reveals only the token's length.
fn is_authorized(headers: &HeaderMap, token: &str) -> bool {
    let given = headers
        .get(AUTHORIZATION)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    let Some((scheme, given)) = given.split_at_checked("Bearer ".len()) else {
        return false;
    };
    let differences = given
        .iter()
        .zip(token.as_bytes())
        .filter(|(one, other)| one != other)
        .count();
    scheme.eq_ignore_ascii_case(b"Bearer ") && given.len() == token.len() && differences == 0
}
