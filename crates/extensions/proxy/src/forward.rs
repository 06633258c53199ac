//! Forwards traffic: each request goes to its upstream unchanged, and each reply comes back
//! unchanged.
//!
//! Requests that a web page sent, or that name another host, are refused (`guard.rs`). Otherwise only
//! what belongs to a single connection is changed: the `host` header, and the hop-by-hop
//! headers of RFC 9110. Bodies are never buffered: their bytes are forwarded as they arrive, in
//! both directions, and a connection cut on one side is cut on the other. Only a [`Saver`] changes
//! requests, which it must receive whole.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft_text::Masker;
use haft_types::Api;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::http::{request, response};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;

use crate::capture::{CapturedBody, SeenReply, SeenRequest, Tee, Traffic};
use crate::guard;
use crate::message_parts::detect_api;
use crate::save::{ReceivedRequest, Saver};
use crate::secrets::mask_path;
use crate::upstream_route::{UpstreamConnector, UpstreamProxies};

/// The headers that belong to a single connection and are not forwarded.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The time after which idle upstream connections are closed. Providers close idle connections
/// after about a minute, and a connection that is about to be closed must not be reused.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// The reason why the proxy could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The configured address of an upstream is not a valid URL.
    #[error("`{url}` is not an upstream: it must be an http:// or https:// URL")]
    Upstream {
        /// The URL as the user wrote it.
        url: String,
    },
    /// The environment sets a proxy with an unsupported protocol.
    #[error(
        "haft speaks to HTTP proxies only, not to `{scheme}`: set HTTP_PROXY and HTTPS_PROXY to `http://host:port`"
    )]
    Scheme {
        /// The protocol of the proxy, such as `socks5`.
        scheme: String,
    },
    /// TLS certificates cannot be verified on this machine.
    #[error("certificates cannot be checked: {0}")]
    Certificates(#[from] rustls::Error),
}

/// The upstream URLs, one for each provider, and the proxies through which they are reached.
#[derive(Clone, Debug)]
pub struct Upstreams {
    openai: Uri,
    anthropic: Uri,
    gemini: Uri,
    proxies: UpstreamProxies,
}

impl Upstreams {
    /// Creates upstreams. `all` replaces every upstream; otherwise `by_api` gives the upstream of
    /// an API, or `None` for the provider's own URL.
    pub fn new(
        all: Option<&str>,
        by_api: impl Fn(Api) -> Option<String>,
    ) -> Result<Self, ProxyError> {
        let url = |api, own: &str| match all {
            Some(all) => parse_upstream(all),
            None => parse_upstream(by_api(api).as_deref().unwrap_or(own)),
        };
        Ok(Self {
            openai: url(Api::OpenaiChat, "https://api.openai.com/v1")?,
            anthropic: url(Api::Anthropic, "https://api.anthropic.com")?,
            gemini: url(Api::Gemini, "https://generativelanguage.googleapis.com")?,
            proxies: UpstreamProxies::default(),
        })
    }

    /// Sets the HTTP proxies through which the upstreams are reached.
    #[must_use]
    pub fn with_proxies(self, proxies: UpstreamProxies) -> Self {
        Self { proxies, ..self }
    }

    /// Returns the upstream for a request, chosen by its path. If the path does not belong to a
    /// request to a model, the upstream is chosen by the headers or the beginning of the path.
    fn choose_upstream(&self, parts: &request::Parts) -> &Uri {
        let path = parts.uri.path();
        let has = |name: &str| parts.headers.contains_key(name);
        match detect_api("POST", path) {
            Some(Api::Anthropic) => &self.anthropic,
            Some(Api::Gemini) => &self.gemini,
            None if has("anthropic-version") => &self.anthropic,
            None if has("x-goog-api-key") || path.starts_with("/v1beta") => &self.gemini,
            Some(Api::OpenaiChat | Api::OpenaiResponses) | None => &self.openai,
        }
    }
}

fn parse_upstream(url: &str) -> Result<Uri, ProxyError> {
    let invalid = || ProxyError::Upstream {
        url: url.to_owned(),
    };
    let uri: Uri = url.trim().parse().map_err(|_| invalid())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    if is_http && uri.authority().is_some() && uri.query().is_none() {
        Ok(uri)
    } else {
        Err(invalid())
    }
}

/// Returns the URL to which a request for `requested` is forwarded. The path of `upstream` is put
/// in front of the requested path, unless that already starts with it.
fn build_target_uri(upstream: &Uri, requested: &Uri) -> Option<Uri> {
    let base = upstream.path().trim_end_matches('/');
    let path = requested.path_and_query().map_or("/", PathAndQuery::as_str);
    let has_base = path
        .strip_prefix(base)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    let path = if base.is_empty() || has_base {
        path.to_owned()
    } else {
        format!("{base}{path}")
    };
    Uri::builder()
        .scheme(upstream.scheme()?.clone())
        .authority(upstream.authority()?.clone())
        .path_and_query(path)
        .build()
        .ok()
}

struct Forwarder {
    upstreams: Upstreams,
    client: Client<HttpsConnector<UpstreamConnector>, ProxyBody>,
    saver: Option<Arc<Saver>>,
    traffic: UnboundedSender<Traffic>,
    exchanges: AtomicU64,
    held: Arc<AtomicUsize>,
}

type ProxyBody = Either<Tee, Full<Bytes>>;

/// A request to a model whose body has not been received yet.
struct IncomingRequest {
    exchange: u64,
    api: Api,
    head: RequestHead,
    /// The host and port of the upstream server.
    upstream: String,
}

/// A request without its body, as the client sent it.
struct RequestHead {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
}

/// Forwards requests and replies until `end` resolves, and passes copies to `traffic` for
/// recording. A `saver` rewrites requests before they are forwarded; without one, their bodies are
/// forwarded byte for byte. The listener should accept connections from this machine only. If the receiver of
/// `traffic` is dropped, forwarding continues without recording.
pub async fn serve(
    listener: TcpListener,
    upstreams: Upstreams,
    saver: Option<Arc<Saver>>,
    traffic: UnboundedSender<Traffic>,
    end: impl Future<Output = ()>,
) -> Result<(), ProxyError> {
    let client = build_client(upstreams.proxies.clone())?;
    let exchanges = AtomicU64::new(0);
    let held = Arc::default();
    let forwarder = Arc::new(Forwarder {
        upstreams,
        client,
        saver,
        traffic,
        exchanges,
        held,
    });
    let mut connections = JoinSet::new();
    let mut end = std::pin::pin!(end);
    loop {
        let accepted = tokio::select! {
            () = &mut end => return Ok(()),
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            // Accepting fails if there are no file descriptors left or the client has disconnected.
            // The next connection may succeed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Nagle's algorithm would delay the small chunks of a stream.
        let _ = stream.set_nodelay(true);
        let forwarder = Arc::clone(&forwarder);
        connections.spawn(async move {
            let answer = service_fn(|request| {
                let forwarder = Arc::clone(&forwarder);
                async move { Ok::<_, Infallible>(forwarder.forward_request(request).await) }
            });
            // A client that disconnects is not an error.
            let connection = hyper::server::conn::http1::Builder::new()
                .preserve_header_case(true)
                .serve_connection(TokioIo::new(stream), answer);
            let _ = connection.await;
        });
    }
}

fn build_client(
    proxies: UpstreamProxies,
) -> Result<Client<HttpsConnector<UpstreamConnector>, ProxyBody>, ProxyError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(Duration::from_secs(30)));
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1();
    Ok(Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_timer(TokioTimer::new())
        .http1_preserve_header_case(true)
        .build(connector.wrap_connector(UpstreamConnector { http, proxies })))
}

impl Forwarder {
    async fn forward_request(&self, request: Request<Incoming>) -> Response<ProxyBody> {
        let started = Instant::now();
        let (mut parts, body) = request.into_parts();
        if let Err(refusal) = guard::check_request(&parts) {
            return build_error_response(refusal.status, refusal.reason);
        }
        let upstream = self.upstreams.choose_upstream(&parts);
        if parts.headers.contains_key(UPGRADE) {
            // Clients that prefer WebSockets fall back to HTTP on this status.
            return build_error_response(
                StatusCode::UPGRADE_REQUIRED,
                "only HTTP/1.1 is passed on, no WebSockets",
            );
        }
        let Some(uri) = build_target_uri(upstream, &parts.uri) else {
            return build_error_response(StatusCode::BAD_GATEWAY, "the path cannot be passed on");
        };
        let exchange = self.exchanges.fetch_add(1, Ordering::Relaxed);
        let path = parts
            .uri
            .path_and_query()
            .map_or("/", PathAndQuery::as_str)
            .to_owned();
        let method = parts.method.to_string();
        let api = detect_api(&method, &path);
        let head = RequestHead {
            method: method.clone(),
            path: path.clone(),
            // Headers that are not forwarded can hold keys, too.
            headers: collect_header_pairs(&parts.headers),
        };
        remove_hop_by_hop(&mut parts.headers);
        let body = match (api, &self.saver) {
            (Some(api), Some(saver)) => {
                let request = IncomingRequest {
                    exchange,
                    api,
                    head,
                    upstream: get_host(upstream).to_owned(),
                };
                match self
                    .rewrite_request(saver, request, &mut parts.headers, body)
                    .await
                {
                    Ok(body) => Either::Right(body),
                    Err(error) => {
                        let why = format_error_chain(&error);
                        return build_error_response(
                            StatusCode::BAD_REQUEST,
                            &format!("the request did not arrive completely: {why}"),
                        );
                    }
                }
            }
            (Some(api), None) => {
                Either::Left(self.capture_request(exchange, api, head, upstream, body))
            }
            (None, _) => Either::Left(Tee::without_capture(body)),
        };
        parts.headers.remove(HOST);
        parts.uri = uri;
        parts.version = Version::HTTP_11;
        match self.client.request(Request::from_parts(parts, body)).await {
            Ok(response) => {
                let (mut parts, body) = response.into_parts();
                remove_hop_by_hop(&mut parts.headers);
                if api.is_none() {
                    let path = mask_path(&path, &Masker::default());
                    let status = parts.status.as_u16();
                    self.send_traffic(Traffic::Other {
                        method,
                        path,
                        status,
                    });
                    return Response::from_parts(parts, Either::Left(Tee::without_capture(body)));
                }
                let body = self.capture_reply(exchange, &parts, body, started);
                Response::from_parts(parts, Either::Left(body))
            }
            Err(error) => {
                let why = format_error_chain(&error);
                if api.is_some() {
                    let headers = Vec::new();
                    let body = CapturedBody::new(&self.held);
                    let first_byte = None;
                    let elapsed = started.elapsed();
                    let status = 502;
                    self.send_traffic(Traffic::Reply(SeenReply {
                        exchange,
                        status,
                        headers,
                        body,
                        first_byte,
                        elapsed,
                    }));
                }
                let host = get_host(upstream);
                build_error_response(
                    StatusCode::BAD_GATEWAY,
                    &format!("{host} cannot be reached: {why}"),
                )
            }
        }
    }

    fn send_traffic(&self, traffic: Traffic) {
        // Sending fails if the recorder has stopped. Forwarding continues without a record.
        let _ = self.traffic.send(traffic);
    }

    fn capture_request(
        &self,
        exchange: u64,
        api: Api,
        head: RequestHead,
        upstream: &Uri,
        body: Incoming,
    ) -> Tee {
        let RequestHead {
            method,
            path,
            headers,
        } = head;
        let upstream = get_host(upstream).to_owned();
        let traffic = self.traffic.clone();
        let on_end = move |body| {
            let seen = SeenRequest {
                exchange,
                api,
                method,
                path,
                upstream,
                headers,
                body,
                saved_in: None,
            };
            let _ = traffic.send(Traffic::Request(seen));
        };
        Tee::new(body, CapturedBody::new(&self.held), Box::new(on_end))
    }

    /// Receives a whole request, rewrites it and records it as received and as sent. Returns the body
    /// to forward.
    async fn rewrite_request(
        &self,
        saver: &Arc<Saver>,
        request: IncomingRequest,
        headers: &mut HeaderMap,
        body: Incoming,
    ) -> Result<Full<Bytes>, hyper::Error> {
        let received = body.collect().await?.to_bytes();
        let IncomingRequest {
            exchange,
            api,
            head,
            upstream,
        } = request;
        let saver = Arc::clone(saver);
        let path = head.path.clone();
        let received_headers = head.headers.clone();
        let host = upstream.clone();
        let bytes = received.clone();
        // Decisions are written to the disk, which takes milliseconds.
        let rewritten = tokio::task::spawn_blocking(move || {
            saver.rewrite(ReceivedRequest {
                api,
                path: &path,
                upstream: &host,
                headers: &received_headers,
                body: &bytes,
            })
        })
        .await
        .ok()
        .flatten();
        let seen = |headers: &HeaderMap, body: &Bytes, saved_in| SeenRequest {
            exchange,
            api,
            method: head.method.clone(),
            path: head.path.clone(),
            upstream: upstream.clone(),
            headers: collect_header_pairs(headers),
            body: CapturedBody::from_bytes(&self.held, body),
            saved_in,
        };
        let Some(rewritten) = rewritten else {
            self.send_traffic(Traffic::Request(SeenRequest {
                headers: head.headers.clone(),
                ..seen(headers, &received, None)
            }));
            return Ok(Full::new(received));
        };
        self.send_traffic(Traffic::Received(SeenRequest {
            headers: head.headers.clone(),
            ..seen(headers, &received, None)
        }));
        // The rewritten body has another length, and it is not compressed.
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        let sent = Bytes::from(rewritten.body);
        headers.insert(CONTENT_LENGTH, sent.len().into());
        self.send_traffic(Traffic::Request(seen(
            headers,
            &sent,
            rewritten.conversation,
        )));
        Ok(Full::new(sent))
    }

    fn capture_reply(
        &self,
        exchange: u64,
        parts: &response::Parts,
        body: Incoming,
        started: Instant,
    ) -> Tee {
        let status = parts.status.as_u16();
        let headers = collect_header_pairs(&parts.headers);
        let traffic = self.traffic.clone();
        let first_byte = Some(started.elapsed());
        let on_end = move |body| {
            let elapsed = started.elapsed();
            let _ = traffic.send(Traffic::Reply(SeenReply {
                exchange,
                status,
                headers,
                body,
                first_byte,
                elapsed,
            }));
        };
        Tee::new(body, CapturedBody::new(&self.held), Box::new(on_end))
    }
}

/// Returns the host and port of an upstream.
fn get_host(upstream: &Uri) -> &str {
    upstream.authority().map_or("", Authority::as_str)
}

/// Removes the hop-by-hop headers, and the headers that the `connection` header lists.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn collect_header_pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let pair = |(name, value): (&HeaderName, &hyper::header::HeaderValue)| {
        (
            name.to_string(),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    };
    headers.iter().map(pair).collect()
}

/// Returns an error response of the proxy itself, in a form that clients of all four APIs recognize
/// as an error.
fn build_error_response(status: StatusCode, why: &str) -> Response<ProxyBody> {
    let message = serde_json::json!({
        "type": "error",
        "error": { "type": "api_error", "code": status.as_u16(), "message": format!("haft proxy: {why}") },
    });
    let mut response = Response::new(Either::Right(Full::new(Bytes::from(message.to_string()))));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        hyper::header::HeaderValue::from_static("application/json"),
    );
    response
}

fn format_error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstream_path_is_prepended_once() {
        let table = [
            (
                "https://h",
                "/v1/messages?beta=true",
                "https://h/v1/messages?beta=true",
            ),
            (
                "https://h/v1",
                "/chat/completions",
                "https://h/v1/chat/completions",
            ),
            (
                "https://h/v1/",
                "/v1/chat/completions",
                "https://h/v1/chat/completions",
            ),
            (
                "http://h:8/api/v1",
                "/v1beta/models",
                "http://h:8/api/v1/v1beta/models",
            ),
            (
                "http://h:8/v1",
                "/v1beta/models",
                "http://h:8/v1/v1beta/models",
            ),
            ("http://h", "/a%2Fb?x=%20&&y", "http://h/a%2Fb?x=%20&&y"),
        ];
        for (upstream, path, expected) in table {
            let found =
                build_target_uri(&parse_upstream(upstream).unwrap(), &path.parse().unwrap())
                    .unwrap();
            assert_eq!(found.to_string(), expected);
        }
        for wrong in ["", "api.openai.com", "ftp://h", "https://", "https://h?x=1"] {
            assert!(parse_upstream(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_of_the_connection_are_not_forwarded() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, X-Mine"),
            ("keep-alive", "timeout=5"),
            ("x-mine", "1"),
            ("transfer-encoding", "chunked"),
            ("authorization", "Bearer x"),
            ("accept", "a"),
        ] {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        remove_hop_by_hop(&mut headers);
        let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["authorization", "accept"]);
    }
}
