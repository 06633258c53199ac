//! Decides which requests are forwarded: those for this machine's own names that no web page sent.
//!
//! A web page in a browser on this machine can send requests to the proxy's address, too. The check
//! of `Host` also stops pages that reach the address by a name of their own (DNS rebinding).

use hyper::header::{HOST, HeaderName, ORIGIN};
use hyper::http::request;
use hyper::http::uri::Authority;
use hyper::{StatusCode, Uri};

/// The header in which browsers state the relation between a page and the requested address.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The values of [`FETCH_SITE`] for requests that no other page sent.
const OWN_SITE: [&str; 2] = ["same-origin", "none"];

/// The reason why a request is not forwarded.
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) reason: &'static str,
}

/// Checks whether a request may be forwarded.
pub(crate) fn check_request(parts: &request::Parts) -> Result<(), Refusal> {
    let hosts = parts.headers.get_all(HOST).iter();
    let hosts: Vec<_> = hosts
        .map(|value| value.to_str().unwrap_or_default())
        .collect();
    let is_own_host = matches!(hosts.as_slice(), [host] if is_loopback(host));
    let is_own_uri = parts
        .uri
        .authority()
        .is_none_or(|authority| is_loopback(authority.as_str()));
    if !is_own_host || !is_own_uri {
        return Err(Refusal {
            status: StatusCode::MISDIRECTED_REQUEST,
            reason: "this host name is not served",
        });
    }
    let text = |name: &HeaderName| {
        let values = parts.headers.get_all(name).iter();
        values.map(|value| value.to_str().unwrap_or_default())
    };
    let has_foreign_origin = text(&ORIGIN).any(|origin| {
        !origin
            .parse::<Uri>()
            .is_ok_and(|uri| uri.authority().map(Authority::as_str) == hosts.first().copied())
    });
    let is_foreign = has_foreign_origin || text(&FETCH_SITE).any(|site| !OWN_SITE.contains(&site));
    if is_foreign {
        return Err(Refusal {
            status: StatusCode::FORBIDDEN,
            reason: "web pages may not use this proxy",
        });
    }
    Ok(())
}

/// True if a host, with or without a port, is a name or an address of this machine's loopback.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() && !name.ends_with(':') => name,
        Some(_) | None => host,
    };
    matches!(
        name.to_ascii_lowercase().as_str(),
        "127.0.0.1" | "localhost" | "[::1]"
    )
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn status(uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check_request(&parts).map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn guard_refuses_foreign_hosts() {
        for host in ["127.0.0.1", "127.0.0.1:4000", "LOCALHOST:1", "[::1]:80"] {
            assert_eq!(status("/v1/models", &[("host", host)]), 200, "{host}");
        }
        for host in [
            "",
            "a.example",
            "a.example:4000",
            "127.0.0.1.a.example",
            "localhost.a.example:4000",
            "127.0.0.1@a.example",
            "a.example#localhost",
            "0.0.0.0:4000",
            "[::]:4000",
            "localhost:x",
            "user@localhost",
        ] {
            assert_eq!(status("/v1/models", &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status("/v1/models", &[]), 421);
        let two = [("host", "localhost"), ("host", "a.example")];
        assert_eq!(status("/v1/models", &two), 421);
        let own = [("host", "localhost:1")];
        assert_eq!(status("http://a.example/v1/models", &own), 421);
        assert_eq!(status("http://localhost:1/v1/models", &own), 200);
    }

    #[test]
    fn guard_refuses_requests_of_web_pages() {
        let with = |name, value| status("/v1/models", &[("host", "localhost:1"), (name, value)]);
        assert_eq!(with("origin", "http://localhost:1"), 200);
        for origin in [
            "null",
            "https://a.example",
            "http://localhost:2",
            "http://127.0.0.1:1",
            "http://localhost:1.a.example",
            "",
            "vscode-file://vscode-app",
        ] {
            assert_eq!(with("origin", origin), 403, "{origin}");
        }
        for (site, allowed) in [
            ("cross-site", 403),
            ("same-site", 403),
            ("same-origin", 200),
            ("none", 200),
        ] {
            assert_eq!(with("sec-fetch-site", site), allowed, "{site}");
        }
    }
}
