//! Decides which requests may read and change the site: requests with the token, for a host name of
//! this machine, and from the site's own origin.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::{COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::{Method, StatusCode};
use tokio::sync::Notify;

/// The secret that grants access to the site. The URL that haft prints contains the secret;
/// afterwards, the browser sends it as a cookie.
///
/// A [ticket](Self::issue_ticket) grants access once without revealing the secret.
#[derive(Clone)]
pub struct AccessToken {
    secret: String,
    ticket: Arc<Ticket>,
}

/// A second secret that a browser can exchange for the cookie only once.
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

    /// Accepts `ticket`, sent as the query parameter of this name, for one visit. A ticket that was
    /// issued earlier becomes invalid.
    pub fn issue_ticket(&self, ticket: String) {
        *self
            .ticket
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(ticket);
    }

    /// Makes the issued ticket invalid, if it has not been used.
    pub fn revoke_ticket(&self) {
        self.ticket
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// Waits until a visitor has used the issued ticket.
    pub async fn wait_for_redemption(&self) {
        self.ticket.redeemed.notified().await;
    }

    /// Returns true if `given` matches the issued ticket, and makes that ticket invalid.
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

    /// Returns the value that every form of the site must contain. It proves that the site itself
    /// wrote the form: a browser sends the cookie with every request, but this value only if the
    /// form contains it.
    pub fn form_token(&self) -> String {
        blake3::Hash::from(blake3::derive_key(
            "haft serve 2026 forms",
            self.secret.as_bytes(),
        ))
        .to_hex()
        .to_string()
    }

    /// True if `given` equals [`Self::form_token`].
    pub(crate) fn is_form_token(&self, given: &str) -> bool {
        blake3::hash(given.as_bytes()) == blake3::hash(self.form_token().as_bytes())
    }

    /// True if `given` equals the secret. Hashes are compared, so that the duration of the
    /// comparison reveals nothing about the secret.
    fn matches_secret(&self, given: &str) -> bool {
        blake3::hash(given.as_bytes()) == blake3::hash(self.secret.as_bytes())
    }
}

/// The secrets in the query string of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GivenSecrets<'a> {
    pub(crate) token: Option<&'a str>,
    pub(crate) ticket: Option<&'a str>,
}

/// The result of checking whether a request is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GuardVerdict {
    /// The request has a valid cookie and may be served.
    Allowed,
    /// The query of the request contains the token. The value is the cookie to set in the response.
    LogIn(String),
    /// The query of the request contains a valid ticket. The value is the cookie to set in the
    /// response.
    Redeemed(String),
    Refused(StatusCode, &'static str),
}

/// Checks whether a request to `port` is allowed. The name of the cookie contains the port, because
/// browsers share cookies between the ports of a host.
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

/// Sets the security headers that every response needs, such as the content security policy.
pub(crate) fn set_security_headers(headers: &mut HeaderMap) {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                          form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        // With this value, other sites learn nothing about the page. With `no-referrer`, browsers
        // would omit the origin from the site's own forms, too.
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
