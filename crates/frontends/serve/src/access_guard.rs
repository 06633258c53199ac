//! Decides which requests may read and change the site: those with the token, for a host name of
//! this machine, and from the site's own origin.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::{COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::{Method, StatusCode};
use tokio::sync::Notify;

/// The secret that grants access to the site. The first URL contains it, and the browser sends it
/// as a cookie afterwards.
///
/// A [ticket](Self::issue_ticket) grants access once without revealing the secret.
#[derive(Clone)]
pub struct AccessToken {
    secret: String,
    ticket: Arc<Ticket>,
}

/// A second secret that is exchanged for the cookie at most once.
#[derive(Default)]
struct Ticket {
    open: Mutex<Option<String>>,
    redeemed: Notify,
}

impl AccessToken {
    /// Creates a token from a secret, which must be hard to guess and consist of letters and
    /// digits.
    pub fn new(secret: String) -> Self {
        Self {
            secret,
            ticket: Arc::default(),
        }
    }

    /// Accepts `ticket` for one visit, as the query parameter `ticket`. Replaces the previously
    /// issued ticket.
    pub fn issue_ticket(&self, ticket: String) {
        *self
            .ticket
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(ticket);
    }

    /// Rejects the ticket from now on.
    pub fn revoke_ticket(&self) {
        self.ticket
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// Waits until a visitor has used the ticket.
    pub async fn wait_for_redemption(&self) {
        self.ticket.redeemed.notified().await;
    }

    /// Invalidates the ticket if `given` matches it; returns false if `given` does not match.
    fn redeem_ticket(&self, given: &str) -> bool {
        let mut open = self
            .ticket
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let matches = open
            .as_ref()
            .is_some_and(|open| blake3::hash(given.as_bytes()) == blake3::hash(open.as_bytes()));
        if matches {
            *open = None;
            self.ticket.redeemed.notify_one();
        }
        matches
    }

    /// Returns the value that every form of the site must contain. Browsers send the cookie with
    /// every request, but this value only with a form that the site itself wrote.
    pub fn form_token(&self) -> String {
        blake3::Hash::from(blake3::derive_key(
            "haft serve 2026 forms",
            self.secret.as_bytes(),
        ))
        .to_hex()
        .to_string()
    }

    /// True if `given` is the value that forms of the site contain.
    pub(crate) fn is_form_token(&self, given: &str) -> bool {
        blake3::hash(given.as_bytes()) == blake3::hash(self.form_token().as_bytes())
    }

    /// True if `given` is the secret. Compares hashes, so that the duration of the comparison
    /// reveals nothing about the secret.
    fn matches_secret(&self, given: &str) -> bool {
        blake3::hash(given.as_bytes()) == blake3::hash(self.secret.as_bytes())
    }
}

/// The secrets in the query of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GivenSecrets<'a> {
    pub(crate) token: Option<&'a str>,
    pub(crate) ticket: Option<&'a str>,
}

/// The decision about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GuardVerdict {
    /// The request may be served.
    Allowed,
    /// The request has the token of the first URL; the response sets this cookie.
    LogIn(String),
    /// The request has the ticket; the response sets this cookie.
    Redeemed(String),
    Refused(StatusCode, &'static str),
}

/// Checks a request to `port`. The cookie's name contains the port, because browsers share cookies
/// between the ports of a host.
pub(crate) fn check_request(
    token: &AccessToken,
    port: u16,
    method: &Method,
    headers: &HeaderMap,
    given: GivenSecrets<'_>,
) -> GuardVerdict {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let own_hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
    let Some(host) = text(HOST).filter(|host| own_hosts.iter().any(|one| one == host)) else {
        return GuardVerdict::Refused(
            StatusCode::MISDIRECTED_REQUEST,
            "this host name is not served",
        );
    };
    // Browsers send the `Origin` header with every form.
    let posts = method == Method::POST;
    let is_cross_origin =
        (posts || headers.contains_key(ORIGIN)) && text(ORIGIN) != Some(&format!("http://{host}"));
    if is_cross_origin {
        return GuardVerdict::Refused(
            StatusCode::FORBIDDEN,
            "other pages may not read or change this one",
        );
    }
    if method != Method::GET && method != Method::HEAD && !posts {
        return GuardVerdict::Refused(StatusCode::METHOD_NOT_ALLOWED, "this cannot be done here");
    }
    let cookie = || {
        format!(
            "haft_{port}={}; HttpOnly; SameSite=Strict; Path=/",
            token.secret
        )
    };
    if !posts && given.token.is_some_and(|given| token.matches_secret(given)) {
        return GuardVerdict::LogIn(cookie());
    }
    if method == Method::GET && given.ticket.is_some_and(|given| token.redeem_ticket(given)) {
        return GuardVerdict::Redeemed(cookie());
    }
    let name = format!("haft_{port}");
    let cookies = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = cookies
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    if pairs.any(|(key, value)| key == name && token.matches_secret(value)) {
        return GuardVerdict::Allowed;
    }
    GuardVerdict::Refused(
        StatusCode::UNAUTHORIZED,
        "open the address that `haft serve` printed",
    )
}

/// Sets the security headers of every response.
pub(crate) fn set_security_headers(headers: &mut HeaderMap) {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                          form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        // Other sites learn nothing about the page. With `no-referrer`, browsers would send no
        // origin with the site's own forms either.
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
}
