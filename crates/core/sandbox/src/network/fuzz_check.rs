//! The property that fuzzing and tests check on requests to the proxy.

use super::request::{ProxyRequest, ProxyRequestKind, find_head_end, parse_request};

/// Checks any bytes as the head of a request: a forwarded request names its host once, states at
/// most one length and no transfer encoding, and parsing it again gives an equal request.
///
/// # Panics
///
/// If the property does not hold.
pub fn check_proxy_request(bytes: &[u8]) {
    let Ok(ProxyRequest { host, port, kind }) = parse_request(bytes) else {
        return;
    };
    let ProxyRequestKind::Plain { head, body, .. } = kind else {
        return;
    };
    assert_eq!(find_head_end(&head), Some(head.len()), "a head with a body");
    let (line, rest) = split_once(&head, b"\r\n");
    let headers: Vec<_> = rest.split(|byte| *byte == b'\n').collect();
    let count = |name: &[u8]| {
        headers
            .iter()
            .filter(|header| {
                header
                    .get(..name.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(name))
            })
            .count()
    };
    assert_eq!(count(b"host:"), 1);
    assert!(count(b"content-length:") <= 1);
    assert_eq!(count(b"transfer-encoding:"), 0);
    assert_eq!(count(b"connection:"), 1);
    let (method, target) = split_once(line, b" ");
    let whole = [
        method,
        format!(" http://{host}:{port}").as_bytes(),
        target,
        b"\r\n",
        rest,
    ]
    .concat();
    let again = parse_request(&whole);
    // The headers that are written anew may exceed the limit on headers.
    if again.as_ref().is_err_and(|refusal| refusal.status == 431) {
        return;
    }
    let expected = ProxyRequest {
        host,
        port,
        kind: ProxyRequestKind::Plain {
            head,
            body,
            expects_continue: false,
        },
    };
    assert_eq!(again, Ok(expected), "{:?}", String::from_utf8_lossy(&whole));
}

/// Splits at the first occurrence of `separator`; the second part is empty without one.
fn split_once<'a>(bytes: &'a [u8], separator: &[u8]) -> (&'a [u8], &'a [u8]) {
    let at = bytes
        .windows(separator.len())
        .position(|window| window == separator)
        .unwrap_or(bytes.len());
    let (before, after) = bytes.split_at(at);
    (before, after.get(separator.len()..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Every seed of the fuzz target, including its findings.
    #[test]
    fn check_proxy_request_holds_for_the_seeds_of_its_fuzz_target() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/proxy_request");
        for entry in std::fs::read_dir(folder).unwrap() {
            super::check_proxy_request(&std::fs::read(entry.unwrap().path()).unwrap());
        }
    }
}
