//! Serves the pages and files of a site, and streams events that report changes of a page.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::access_guard::{
    AccessToken, GivenSecrets, GuardVerdict, check_request, set_security_headers,
};
use crate::markup::build_redirect_page;

/// The interval at which the server checks whether a page has changed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The interval at which the server checks whether the text of a running page has grown. Reading
/// that text costs little.
const TEXT_POLL_INTERVAL: Duration = Duration::from_millis(80);

/// The number of checks of the text for each check of the whole page.
const TEXT_POLLS_PER_VERSION: usize = 3;

/// The path and the query string of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// The decoded segments of the path. Invalid UTF-8 is replaced.
    pub path: Vec<String>,
    /// The decoded parameters of the query. If a name occurs twice, the last value counts.
    pub query: BTreeMap<String, String>,
}

impl PageRequest {
    fn new(path: &str, query: &str) -> Self {
        let segments = path.split('/').filter(|segment| !segment.is_empty());
        Self {
            path: segments
                .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
                .collect(),
            query: FormFields::parse(query.as_bytes()).0.into_iter().collect(),
        }
    }

    /// Returns a number of the query; 0 if it is missing or not a number.
    pub(crate) fn number(&self, name: &str) -> usize {
        self.query
            .get(name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    }
}

/// The fields of a submitted form, in the order in which they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormFields(Vec<(String, String)>);

impl FormFields {
    fn parse(encoded: &[u8]) -> Self {
        Self(form_urlencoded::parse(encoded).into_owned().collect())
    }

    /// Returns the first value of a field, or an empty string if the form has no such field.
    pub fn get(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map_or("", |(_, value)| value)
    }

    /// Returns all values of a field, in the order in which they were sent.
    pub fn get_all(&self, name: &'static str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The response to a submitted form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormAnswer {
    /// An HTML document to send.
    Page(String),
    /// The path of a page to which the browser is redirected, so that reloading does not submit the
    /// form again.
    Redirect(String),
}

/// The characters that are percent-encoded in a path segment.
const ENCODED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// Percent-encodes `text` so that it is a single segment of a path.
pub fn encode_path_segment(text: &str) -> String {
    utf8_percent_encode(text, ENCODED_CHARACTERS).to_string()
}

/// An image for a page of the site, with its media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteImage {
    kind: &'static str,
    bytes: Vec<u8>,
}

impl SiteImage {
    /// Creates an image. Returns `None` if images of this media type can contain scripts.
    pub fn new(media_type: &str, bytes: Vec<u8>) -> Option<Self> {
        let kind = ["image/png", "image/jpeg", "image/gif", "image/webp"]
            .into_iter()
            .find(|kind| *kind == media_type)?;
        Some(Self { kind, bytes })
    }
}

/// The pages, images and forms that [`serve`] makes available. A trait, so that tests of the server
/// can use a site of their own.
#[async_trait]
pub trait Site: Send + Sync {
    /// Returns a page as a complete HTML document, or `None` if there is no page with the requested
    /// path.
    async fn page(&self, request: &PageRequest) -> Result<Option<String>, String>;

    /// Returns the image at a path below `/image`, or `None` if there is no such image.
    async fn image(&self, request: &PageRequest) -> Option<SiteImage>;

    /// Handles a submitted form. Returns `None` if the site has no such form.
    async fn post(
        &self,
        request: &PageRequest,
        form: &FormFields,
    ) -> Result<Option<FormAnswer>, String>;

    /// Returns a text that changes whenever the page changes, or `None` if the page never changes.
    async fn version(&self, request: &PageRequest) -> Option<String>;

    /// Returns the text that a page shows while it is being written, or `None` if the page shows no
    /// such text. It is asked for several times a second.
    fn live_text(&self, _: &PageRequest) -> Option<String> {
        None
    }

    /// Returns the page for an error, or `None` if plain text is enough. `message` is in the user's
    /// language.
    fn error_page(&self, _status: u16, _message: &str) -> Option<String> {
        None
    }

    /// Returns the style sheet of all pages.
    fn style(&self) -> String;
}

/// Serves `site` until `end` resolves. The listener must accept connections from this machine only.
pub async fn serve(
    listener: TcpListener,
    site: Arc<dyn Site>,
    token: AccessToken,
    end: impl Future<Output = ()>,
) {
    let Ok(port) = listener.local_addr().map(|address| address.port()) else {
        return;
    };
    let mut connections = JoinSet::new();
    let mut end = std::pin::pin!(end);
    loop {
        let accepted = tokio::select! {
            () = &mut end => return,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            // Accepting fails if there are no file descriptors left or the client has disconnected.
            // The next connection may succeed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let site = Arc::clone(&site);
        let token = token.clone();
        connections.spawn(async move {
            let answer = service_fn(|request: Request<Incoming>| {
                let site = Arc::clone(&site);
                let token = token.clone();
                async move { Ok::<_, Infallible>(handle_request(site, &token, port, request).await) }
            });
            // A client that disconnects is not an error.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

type SiteBody = UnsyncBoxBody<Bytes, Infallible>;

async fn handle_request(
    site: Arc<dyn Site>,
    token: &AccessToken,
    port: u16,
    request: Request<Incoming>,
) -> Response<SiteBody> {
    let page = PageRequest::new(
        request.uri().path(),
        request.uri().query().unwrap_or_default(),
    );
    let parameter = |name: &str| page.query.get(name).map(String::as_str);
    let given = GivenSecrets {
        token: parameter("token"),
        ticket: parameter("ticket"),
    };
    let mut response = match check_request(token, port, request.method(), request.headers(), given)
    {
        GuardVerdict::Refused(status, why) => build_error_response(status, why),
        GuardVerdict::LogIn(cookie) => {
            // The token must not stay in the URL and thus in the browser's history.
            let mut response = build_redirect_response(request.uri().path());
            set_header(&mut response, SET_COOKIE, &cookie);
            response
        }
        GuardVerdict::Redeemed(cookie) => {
            // The visit was started by a page outside the site. After a redirect by status code,
            // the browser would not send a `SameSite=Strict` cookie. It sends the cookie when it
            // follows a redirect page of the site itself.
            let page = build_redirect_page(request.uri().path());
            let mut response = build_response(StatusCode::OK, "text/html; charset=utf-8", page);
            set_header(&mut response, SET_COOKIE, &cookie);
            response
        }
        GuardVerdict::Allowed if request.method() == Method::POST => {
            handle_form(site, token, &page, request).await
        }
        GuardVerdict::Allowed => handle_get(site, page).await,
    };
    set_security_headers(response.headers_mut());
    response
}

/// Handles a submitted form. A form without the site's form token is rejected.
async fn handle_form(
    site: Arc<dyn Site>,
    token: &AccessToken,
    page: &PageRequest,
    request: Request<Incoming>,
) -> Response<SiteBody> {
    const MAX_FORM_BYTES: usize = 1 << 20;
    let kind = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if kind.split(';').next() != Some("application/x-www-form-urlencoded") {
        return build_error_response(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "only forms can be posted",
        );
    }
    let Ok(body) = Limited::new(request.into_body(), MAX_FORM_BYTES)
        .collect()
        .await
    else {
        return build_error_response(StatusCode::PAYLOAD_TOO_LARGE, "the form is too large");
    };
    let form = FormFields::parse(&body.to_bytes());
    if !token.is_form_token(form.get(crate::markup::FORM_TOKEN_FIELD)) {
        return build_error_response(
            StatusCode::FORBIDDEN,
            "the form is not one of this page; load the page again",
        );
    }
    match site.post(page, &form).await {
        Ok(Some(FormAnswer::Page(html))) => {
            build_response(StatusCode::OK, "text/html; charset=utf-8", html)
        }
        Ok(Some(FormAnswer::Redirect(to))) => build_redirect_response(&to),
        Ok(None) => build_error_page(
            site.as_ref(),
            StatusCode::NOT_FOUND,
            "there is no such form",
        ),
        Err(error) => build_error_page(site.as_ref(), StatusCode::INTERNAL_SERVER_ERROR, &error),
    }
}

/// Returns a response that redirects the browser to another page of the site.
fn build_redirect_response(to: &str) -> Response<SiteBody> {
    let mut response = build_response(
        StatusCode::SEE_OTHER,
        "text/plain; charset=utf-8",
        String::new(),
    );
    set_header(&mut response, LOCATION, to);
    response
}

async fn handle_get(site: Arc<dyn Site>, page: PageRequest) -> Response<SiteBody> {
    let names: Vec<_> = page.path.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["style.css"] => build_response(StatusCode::OK, "text/css; charset=utf-8", site.style()),
        ["icon.svg"] => build_response(
            StatusCode::OK,
            "image/svg+xml",
            include_str!("icon.svg").to_owned(),
        ),
        ["image", ..] => match site.image(&page).await {
            Some(image) => build_response(StatusCode::OK, image.kind, image.bytes),
            None => build_error_response(StatusCode::NOT_FOUND, "there is no such picture"),
        },
        ["live.js"] => build_response(
            StatusCode::OK,
            "text/javascript; charset=utf-8",
            include_str!("live.js").to_owned(),
        ),
        ["events"] => {
            let path = page.query.get("path").map_or("/", String::as_str);
            build_event_stream(site, PageRequest::new(path, ""))
        }
        _ => match site.page(&page).await {
            Ok(Some(html)) => build_response(StatusCode::OK, "text/html; charset=utf-8", html),
            Ok(None) => build_error_page(
                site.as_ref(),
                StatusCode::NOT_FOUND,
                "there is no such page",
            ),
            Err(error) => {
                build_error_page(site.as_ref(), StatusCode::INTERNAL_SERVER_ERROR, &error)
            }
        },
    }
}

/// Returns an error response with the site's page for the error.
fn build_error_page(site: &dyn Site, status: StatusCode, why: &str) -> Response<SiteBody> {
    let message = haft_messages::translate_error(why);
    match site.error_page(status.as_u16(), &message) {
        Some(page) => build_response(status, "text/html; charset=utf-8", page),
        None => build_error_response(status, why),
    }
}

/// Returns an error response that contains a message in the user's language.
fn build_error_response(status: StatusCode, why: &str) -> Response<SiteBody> {
    build_response(
        status,
        "text/plain; charset=utf-8",
        format!("{}\n", haft_messages::translate_error(why)),
    )
}

fn build_response(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<SiteBody> {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn set_header(response: &mut Response<SiteBody>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Returns a response that streams an event for the page's current version, another event whenever
/// the version changes, and events of the type `text` while the page's text grows.
fn build_event_stream(site: Arc<dyn Site>, page: PageRequest) -> Response<SiteBody> {
    let watched = WatchedPage {
        site,
        page,
        version: None,
        text: None,
    };
    let next = |mut watched: WatchedPage| async move {
        let event = watched.next_event().await?;
        let frame = Ok::<_, Infallible>(Frame::data(Bytes::from(event)));
        Some((frame, watched))
    };
    let body = StreamBody::new(stream::unfold(watched, next));
    let mut response = Response::new(body.boxed_unsync());
    set_header(&mut response, CONTENT_TYPE, "text/event-stream");
    response
}

/// A page whose changes are streamed to a browser.
struct WatchedPage {
    site: Arc<dyn Site>,
    page: PageRequest,
    /// The version and the text of the last events.
    version: Option<String>,
    text: Option<String>,
}

impl WatchedPage {
    /// Waits for a change, and returns its event, or `None` if the page no longer changes.
    async fn next_event(&mut self) -> Option<String> {
        loop {
            let version = self.site.version(&self.page).await?;
            if self.version.as_ref() != Some(&version) {
                let event = format!("data: {}\n\n", version.replace(['\n', '\r'], " "));
                self.version = Some(version);
                return Some(event);
            }
            let pause = match self.text {
                Some(_) => TEXT_POLL_INTERVAL,
                None => POLL_INTERVAL,
            };
            for _ in 0..TEXT_POLLS_PER_VERSION {
                let text = self.site.live_text(&self.page);
                if text != self.text {
                    self.text.clone_from(&text);
                    // JSON has no line breaks.
                    let json = serde_json::Value::from(text.unwrap_or_default());
                    return Some(format!("event: text\ndata: {json}\n\n"));
                }
                tokio::time::sleep(pause).await;
                if text.is_none() {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_request_and_form_fields_are_decoded() {
        let page = PageRequest::new("/c/a%20b%2F/r//3", "q=x+y%26&empty&q2=%zz%");
        assert_eq!(page.path, ["c", "a b/", "r", "3"]);
        let query: Vec<_> = page
            .query
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(query, [("empty", ""), ("q", "x y&"), ("q2", "%zz%")]);
        let form = FormFields::parse(b"id=1&text=a+%2B+b%0Ac&id=2");
        assert_eq!(form.get_all("id").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!((form.get("text"), form.get("nothing")), ("a + b\nc", ""));
        let not_utf8 = PageRequest::new("/%e6%bc%a2%ff", "a=%e6%bc%a2%ff");
        assert_eq!(
            (not_utf8.path[0].as_str(), not_utf8.query["a"].as_str()),
            ("漢\u{fffd}", "漢\u{fffd}")
        );
    }

    #[test]
    fn encode_path_segment_round_trips() {
        let text = "a-b_c/d e%漢?#..";
        let segment = encode_path_segment(text);
        assert_eq!(segment, "a-b_c%2Fd%20e%25%E6%BC%A2%3F%23%2E%2E");
        assert_eq!(PageRequest::new(&segment, "").path, [text]);
    }
}
