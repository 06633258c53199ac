//! The OAuth pages of an MCP server that requires a login: metadata, client registration,
//! authorization and tokens.
//!
//! The pages are written without the SDK that haft uses. Invariant: a code can be used once, and
//! only with the secret behind its challenge; a refresh token can be used once; only the newest
//! access token is accepted.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The OAuth pages of a server, and the state of its logins.
pub(super) struct Logins {
    origin: String,
    seconds: u64,
    issued: Mutex<Issued>,
}

#[derive(Default)]
struct Issued {
    /// The code challenge of each authorization code that was issued.
    codes: HashMap<String, String>,
    access: Option<String>,
    refresh: HashSet<String>,
    grants: Vec<String>,
}

/// A response: its status line, additional headers, and its body.
pub(super) type Page = (&'static str, String, String);

impl Logins {
    /// Creates a login whose tokens expire after `seconds` seconds.
    pub(super) fn new(origin: String, seconds: u64) -> Self {
        Self {
            origin,
            seconds,
            issued: Mutex::default(),
        }
    }

    /// Returns the grant types that clients used to get tokens, in order.
    pub(super) fn grants(&self) -> Vec<String> {
        self.lock_issued().grants.clone()
    }

    /// True if the `authorization` header contains the newest access token.
    pub(super) fn admits(&self, authorization: Option<&str>) -> bool {
        let issued = self.lock_issued();
        issued
            .access
            .as_ref()
            .is_some_and(|access| authorization == Some(&format!("Bearer {access}")))
    }

    /// Returns the header that directs unauthorized clients to the login.
    pub(super) fn challenge_header(&self) -> String {
        let page = format!("{}/.well-known/oauth-protected-resource/mcp", self.origin);
        format!("www-authenticate: Bearer resource_metadata=\"{page}\"\r\n")
    }

    /// Returns the response for an OAuth page; `None` if `target` is not an OAuth page.
    pub(super) fn serve_page(&self, target: &str, body: &[u8]) -> Option<Page> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let ok = |value: &Value| {
            (
                "200 OK",
                "content-type: application/json\r\n".to_owned(),
                value.to_string(),
            )
        };
        let origin = &self.origin;
        Some(match path {
            "/.well-known/oauth-protected-resource/mcp" => ok(
                &json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] }),
            ),
            "/.well-known/oauth-authorization-server" => ok(&json!({
                "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"), "registration_endpoint": format!("{origin}/register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"] })),
            "/register" => {
                let mut client: Value = serde_json::from_slice(body).unwrap_or_default();
                client["client_id"] = "client-1".into();
                let (_, headers, body) = ok(&client);
                ("201 Created", headers, body)
            }
            "/authorize" => self.authorize(&parse_form(query)),
            "/token" => match self.exchange_token(&parse_form(&String::from_utf8_lossy(body))) {
                Some(token) => ok(&token),
                None => (
                    "400 Bad Request",
                    String::new(),
                    json!({ "error": "invalid_grant" }).to_string(),
                ),
            },
            _ => return None,
        })
    }

    /// Grants authorization without asking a user, and redirects to the client.
    fn authorize(&self, asked: &HashMap<String, String>) -> Page {
        let given = |key: &str| asked.get(key).cloned().unwrap_or_default();
        if given("code_challenge_method") != "S256" || given("client_id") != "client-1" {
            return ("400 Bad Request", String::new(), String::new());
        }
        let mut issued = self.lock_issued();
        let code = format!("code-{}", issued.codes.len());
        issued.codes.insert(code.clone(), given("code_challenge"));
        let back = format!(
            "{}?code={code}&state={}",
            given("redirect_uri"),
            percent_encode(&given("state"))
        );
        ("302 Found", format!("location: {back}\r\n"), String::new())
    }

    fn exchange_token(&self, asked: &HashMap<String, String>) -> Option<Value> {
        let mut issued = self.lock_issued();
        let grant = asked.get("grant_type")?.clone();
        match grant.as_str() {
            "authorization_code" => {
                let challenge = issued.codes.remove(asked.get("code")?)?;
                let held =
                    URL_SAFE_NO_PAD.encode(Sha256::digest(asked.get("code_verifier")?.as_bytes()));
                (held == challenge).then_some(())?;
            }
            "refresh_token" => issued.refresh.take(asked.get("refresh_token")?).map(drop)?,
            _ => return None,
        }
        issued.grants.push(grant);
        let number = issued.grants.len();
        let access = format!("access-{number}");
        let refresh = format!("refresh-{number}");
        issued.access = Some(access.clone());
        issued.refresh.insert(refresh.clone());
        Some(
            json!({ "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": self.seconds }),
        )
    }

    fn lock_issued(&self) -> std::sync::MutexGuard<'_, Issued> {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests a page like a browser that follows redirects. Returns the body of the last response.
/// Supports only `http://` URLs.
pub fn visit_url(url: &str) -> io::Result<String> {
    let wrong = || io::Error::other(format!("cannot visit {url}"));
    let (host, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or_else(wrong)?;
    let mut server = TcpStream::connect(host)?;
    server.write_all(format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes())?;
    let mut reader = BufReader::new(server);
    let mut length = 0;
    let mut location = None;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            break;
        }
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("location") => {
                location = Some(value.to_owned());
            }
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap_or(0);
            }
            None if line.trim().is_empty() => break,
            Some(_) | None => {}
        }
    }
    if let Some(next) = location {
        return visit_url(&next);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Parses the fields in a form or a query string.
fn parse_form(text: &str) -> HashMap<String, String> {
    let fields = text.split('&').filter_map(|pair| pair.split_once('='));
    fields
        .map(|(name, value)| (percent_decode(name), percent_decode(value)))
        .collect()
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (code, first) {
            (Some(byte), _) => bytes.push(byte),
            (None, b'+') => bytes.push(b' '),
            (None, other) => bytes.push(*other),
        }
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn percent_encode(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
