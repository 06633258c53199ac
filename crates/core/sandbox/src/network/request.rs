//! Parses the single request of a proxy connection and rewrites its head for the server.
//!
//! Parsing is strict where proxies and servers are known to differ: lines end in CR LF, there is at
//! most one length, and the host of the target equals the host of the header. The forwarded head is
//! written anew from the parsed request, so the server receives exactly the request that was
//! checked.

use super::hosts::{CanonicalHost, parse_port};

/// The maximum number of bytes in a request's head.
pub(super) const MAX_HEAD_BYTES: usize = 32 << 10;
const MAX_HEADERS: usize = 100;

/// Headers that are not forwarded: hop-by-hop headers, headers that are written anew, and `close`,
/// which the written `Connection: close` makes a hop-by-hop header.
const DROPPED_HEADERS: &[&str] = &[
    "close",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A parsed request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    pub(super) host: CanonicalHost,
    pub(super) port: u16,
    pub(super) kind: ProxyRequestKind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyRequestKind {
    /// A `CONNECT` request: bytes are copied in both directions.
    Tunnel,
    /// A plain HTTP request.
    Plain {
        /// The head to forward to the server.
        head: Vec<u8>,
        /// The length of the body.
        body: u64,
        /// True if the client waits for `100 Continue` before it sends the body.
        expects_continue: bool,
    },
}

/// The error response for a request that is not served.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyRefusal {
    pub(super) status: u16,
    pub(super) reason: &'static str,
    pub(super) text: String,
}

impl ProxyRefusal {
    pub(super) fn new(status: u16, reason: &'static str, text: impl Into<String>) -> Self {
        Self {
            status,
            reason,
            text: text.into(),
        }
    }

    fn bad_request(text: impl Into<String>) -> Self {
        Self::new(400, "Bad Request", text)
    }
}

/// Returns the index at which the head of a request ends, or `None` if the head is incomplete.
pub(super) fn find_head_end(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|at| at + 4)
}

/// Parses a complete head, including the empty line at its end.
pub(super) fn parse_request(head: &[u8]) -> Result<ProxyRequest, ProxyRefusal> {
    if !has_strict_lines(head) {
        return Err(ProxyRefusal::bad_request(
            "a line of the request does not end in CR LF, or holds a NUL",
        ));
    }
    let mut space = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut space);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Ok(_) => {
            return Err(ProxyRefusal::bad_request(
                "the request does not end where it should",
            ));
        }
        Err(httparse::Error::TooManyHeaders) => {
            return Err(ProxyRefusal::new(
                431,
                "Request Header Fields Too Large",
                "the request has more than 100 headers",
            ));
        }
        Err(error) => {
            return Err(ProxyRefusal::bad_request(format!(
                "the request cannot be read: {error}"
            )));
        }
    }
    let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(ProxyRefusal::bad_request(
            "the request line is not complete",
        ));
    };
    if method == "CONNECT" {
        let (host, port) = parse_authority(target)
            .and_then(|(host, port)| Some((host, port?)))
            .ok_or_else(|| {
                ProxyRefusal::bad_request(
                    "`CONNECT` needs a host and a port, such as `example.com:443`",
                )
            })?;
        return Ok(ProxyRequest {
            host,
            port,
            kind: ProxyRequestKind::Tunnel,
        });
    }
    parse_plain_request(method, target, version, parsed.headers)
}

fn parse_plain_request(
    method: &str,
    target: &str,
    version: u8,
    headers: &[httparse::Header<'_>],
) -> Result<ProxyRequest, ProxyRefusal> {
    let rest = target
        .get(..7)
        .filter(|scheme| scheme.eq_ignore_ascii_case("http://"))
        .and(target.get(7..));
    let rest = rest.ok_or_else(|| {
        ProxyRefusal::bad_request(
            "this is a proxy: it takes `CONNECT` and addresses that begin with `http://`",
        )
    })?;
    let (name, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let no_host = || ProxyRefusal::bad_request("the address names no host that can be understood");
    let (host, port) = parse_authority(name).ok_or_else(no_host)?;
    let port = port.unwrap_or(80);
    if path.contains('#') {
        return Err(ProxyRefusal::bad_request(
            "the address has a fragment, which is never sent",
        ));
    }
    check_host_header(headers, &host, port)?;
    let body = parse_body_length(headers)?;

    let shown = if port == 80 {
        host.to_string()
    } else {
        format!("{host}:{port}")
    };
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut head =
        format!("{method} {slash}{path} HTTP/1.{version}\r\nHost: {shown}\r\n").into_bytes();
    let nominated: Vec<_> = header_values(headers, "connection")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .collect();
    for header in headers {
        let is = |name: &[u8]| {
            header
                .name
                .as_bytes()
                .eq_ignore_ascii_case(name.trim_ascii())
        };
        if DROPPED_HEADERS.iter().any(|name| is(name.as_bytes()))
            || nominated.iter().any(|name| is(name))
        {
            continue;
        }
        for part in [header.name.as_bytes(), b": ", header.value, b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    if let Some(length) = body {
        head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    // Only one request per connection, so that every request is checked.
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    let expects_continue =
        header_values(headers, "expect").any(|value| value.eq_ignore_ascii_case(b"100-continue"));
    Ok(ProxyRequest {
        host,
        port,
        kind: ProxyRequestKind::Plain {
            head,
            body: body.unwrap_or(0),
            expects_continue,
        },
    })
}

/// Checks that the `Host` header, if present, names the host and port of the target.
fn check_host_header(
    headers: &[httparse::Header<'_>],
    host: &CanonicalHost,
    port: u16,
) -> Result<(), ProxyRefusal> {
    let mut named = header_values(headers, "host");
    let first = named.next();
    let further = named.next();
    if further.is_some() {
        return Err(ProxyRefusal::bad_request(
            "the request has two `Host` headers",
        ));
    }
    let Some(value) = first else { return Ok(()) };
    let same = std::str::from_utf8(value)
        .ok()
        .and_then(parse_authority)
        .is_some_and(|(named, at)| named == *host && at.unwrap_or(80) == port);
    if same {
        Ok(())
    } else {
        Err(ProxyRefusal::bad_request(
            "the `Host` header and the address name different hosts",
        ))
    }
}

/// Returns the length of the body. A body of unknown length is an error.
fn parse_body_length(headers: &[httparse::Header<'_>]) -> Result<Option<u64>, ProxyRefusal> {
    let lengths: Vec<_> = header_values(headers, "content-length").collect();
    let encoded = header_values(headers, "transfer-encoding").next().is_some();
    match (&lengths[..], encoded) {
        ([], false) => Ok(None),
        ([], true) => Err(ProxyRefusal::new(
            411,
            "Length Required",
            "a body without `Content-Length` is not sent on over plain HTTP; use `https` or send its length",
        )),
        (_, true) => Err(ProxyRefusal::bad_request(
            "the request has both `Content-Length` and `Transfer-Encoding`",
        )),
        ([length], false) => {
            let digits = length.iter().all(u8::is_ascii_digit);
            let length = std::str::from_utf8(length)
                .ok()
                .filter(|_| digits)
                .and_then(|length| length.parse().ok());
            length
                .map(Some)
                .ok_or_else(|| ProxyRefusal::bad_request("`Content-Length` is no number"))
        }
        (_, false) => Err(ProxyRefusal::bad_request(
            "the request has two `Content-Length` headers",
        )),
    }
}

fn header_values<'a>(
    headers: &'a [httparse::Header<'_>],
    name: &str,
) -> impl Iterator<Item = &'a [u8]> {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value.trim_ascii())
}

/// Parses a host and an optional port.
fn parse_authority(text: &str) -> Option<(CanonicalHost, Option<u16>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(parse_port(port)?)),
        Some(_) | None => (text, None),
    };
    // Outside brackets a colon cannot be part of a host.
    let bracketed = host.starts_with('[') && host.ends_with(']');
    (bracketed || !host.contains(':')).then_some(())?;
    Some((CanonicalHost::parse_requested(host)?, port))
}

/// True if CR and LF occur only as pairs and there is no NUL.
fn has_strict_lines(head: &[u8]) -> bool {
    let mut before = 0;
    for &byte in head {
        if (before == b'\r') != (byte == b'\n') || byte == 0 {
            return false;
        }
        before = byte;
    }
    before != b'\r'
}

#[cfg(test)]
mod tests;
