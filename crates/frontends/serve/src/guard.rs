//! Decides who may read and change the site: browsers that opened the first address, under a name
//! of this machine, from the page itself.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::{COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::{Method, StatusCode};
use tokio::sync::Notify;

/// The secret that opens the site: part of the first address, and the cookie afterwards.
///
/// A [ticket](Self::issue_ticket) opens the site once without revealing the secret.
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

    /// Accepts `ticket` for one visit, as the query parameter `ticket`. It replaces a ticket that
    /// was issued before.
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

    /// Waits until a visit has used the ticket.
    pub async fn ticket_redeemed(&self) {
        self.ticket.redeemed.notified().await;
    }

    /// Uses the ticket up; returns false if `given` is not the open ticket.
    fn redeem(&self, given: &str) -> bool {
        let mut open = self
            .ticket
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let fits = open
            .as_ref()
            .is_some_and(|open| blake3::hash(given.as_bytes()) == blake3::hash(open.as_bytes()));
        if fits {
            *open = None;
            self.ticket.redeemed.notify_one();
        }
        fits
    }

    /// Returns the value that a form of the site must contain. Browsers send the cookie with every
    /// request, but this value only with a form that the site itself wrote.
    pub fn for_forms(&self) -> String {
        blake3::Hash::from(blake3::derive_key(
            "haft serve 2026 forms",
            self.secret.as_bytes(),
        ))
        .to_hex()
        .to_string()
    }

    /// Whether this came with a form of the site.
    pub(crate) fn wrote(&self, given: &str) -> bool {
        blake3::hash(given.as_bytes()) == blake3::hash(self.for_forms().as_bytes())
    }

    /// Compared by hash, so that how long it takes tells nothing.
    fn is(&self, given: &str) -> bool {
        blake3::hash(given.as_bytes()) == blake3::hash(self.secret.as_bytes())
    }
}

/// The secrets in the query of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GivenSecrets<'a> {
    pub(crate) token: Option<&'a str>,
    pub(crate) ticket: Option<&'a str>,
}

/// What becomes of a request before a page is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GuardVerdict {
    /// It may see the page.
    Allowed,
    /// It came with the token of the first address, and is given this cookie.
    LogIn(String),
    /// It came with the ticket, and is given this cookie.
    Redeemed(String),
    Refused(StatusCode, &'static str),
}

/// Decides about a request to this port. Cookies are shared between the ports of a host, so the
/// name has the port in it.
pub(crate) fn check(
    token: &AccessToken,
    port: u16,
    method: &Method,
    headers: &HeaderMap,
    given: GivenSecrets<'_>,
) -> GuardVerdict {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let own = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
    let Some(host) = text(HOST).filter(|host| own.iter().any(|one| one == host)) else {
        return GuardVerdict::Refused(
            StatusCode::MISDIRECTED_REQUEST,
            "this host name is not served",
        );
    };
    // Browsers name the origin of every form that is posted.
    let posts = method == Method::POST;
    let foreign =
        (posts || headers.contains_key(ORIGIN)) && text(ORIGIN) != Some(&format!("http://{host}"));
    if foreign {
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
    if !posts && given.token.is_some_and(|given| token.is(given)) {
        return GuardVerdict::LogIn(cookie());
    }
    if method == Method::GET && given.ticket.is_some_and(|given| token.redeem(given)) {
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
    if pairs.any(|(key, value)| key == name && token.is(value)) {
        return GuardVerdict::Allowed;
    }
    GuardVerdict::Refused(
        StatusCode::UNAUTHORIZED,
        "open the address that `haft serve` printed",
    )
}

/// What every answer says about itself.
pub(crate) fn protect(headers: &mut HeaderMap) {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                          form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        // Other sites learn nothing. With `no-referrer`, browsers would not say where the site's
        // own forms come from, either.
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
