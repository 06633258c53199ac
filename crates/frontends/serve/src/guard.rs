//! Who may read and change: whoever opened the first address, under this machine's own name, from the page itself.

use hyper::header::{COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::{Method, StatusCode};

/// What the first address holds, and the cookie afterwards.
#[derive(Clone)]
pub struct AccessToken(String);

impl AccessToken {
    /// This text, which must be hard to guess and be made of letters and digits.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// What a form of the site must bring along. The cookie goes with every request of the browser, this only with a form that
    /// the site itself wrote.
    pub fn for_forms(&self) -> String {
        blake3::Hash::from(blake3::derive_key("haft serve 2026 forms", self.0.as_bytes())).to_hex().to_string()
    }

    /// Whether this came with a form of the site.
    pub(crate) fn wrote(&self, given: &str) -> bool {
        blake3::hash(given.as_bytes()) == blake3::hash(self.for_forms().as_bytes())
    }

    /// Compared by hash, so that how long it takes tells nothing.
    fn is(&self, given: &str) -> bool {
        blake3::hash(given.as_bytes()) == blake3::hash(self.0.as_bytes())
    }
}

/// What becomes of a request before a page is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GuardVerdict {
    /// It may see the page.
    Allowed,
    /// It came with the token of the first address, and is given this cookie.
    LogIn(String),
    Refused(StatusCode, &'static str),
}

/// Decides about a request to this port. Cookies are shared between the ports of a host, so the name has the port in it.
pub(crate) fn check(
    token: &AccessToken,
    port: u16,
    method: &Method,
    headers: &HeaderMap,
    given: Option<&str>,
) -> GuardVerdict {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let own = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
    let Some(host) = text(HOST).filter(|host| own.iter().any(|one| one == host)) else {
        return GuardVerdict::Refused(StatusCode::MISDIRECTED_REQUEST, "this host name is not served");
    };
    // Browsers name the origin of every form that is posted.
    let posts = method == Method::POST;
    let foreign = (posts || headers.contains_key(ORIGIN)) && text(ORIGIN) != Some(&format!("http://{host}"));
    if foreign {
        return GuardVerdict::Refused(StatusCode::FORBIDDEN, "other pages may not read or change this one");
    }
    if method != Method::GET && method != Method::HEAD && !posts {
        return GuardVerdict::Refused(StatusCode::METHOD_NOT_ALLOWED, "this cannot be done here");
    }
    if !posts && given.is_some_and(|given| token.is(given)) {
        let cookie = format!("haft_{port}={}; HttpOnly; SameSite=Strict; Path=/", token.0);
        return GuardVerdict::LogIn(cookie);
    }
    let name = format!("haft_{port}");
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    if pairs.any(|(key, value)| key == name && token.is(value)) {
        return GuardVerdict::Allowed;
    }
    GuardVerdict::Refused(StatusCode::UNAUTHORIZED, "open the address that `haft serve` printed")
}

/// What every answer says about itself.
pub(crate) fn protect(headers: &mut HeaderMap) {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                          form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        // Other sites learn nothing. With `no-referrer`, browsers would not say where the site's own forms come from, either.
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}
