//! Keeps keys out of the record: decides which headers and parameters are stored with their values,
//! and collects the values that are masked everywhere else.

use base64::Engine as _;
use haft_text::Masker;

pub(crate) const MASKED: &str = "[masked]";

/// The headers whose values are stored. They describe a connection, a body, an API or its limits.
/// The value of every other header is replaced, because any header can hold a key.
const STORED_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "age",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "cache-control",
    "cf-ray",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "expect",
    "host",
    "idempotency-key",
    "openai-beta",
    "openai-model",
    "openai-processing-ms",
    "openai-version",
    "request-id",
    "retry-after",
    "server",
    "server-timing",
    "traceparent",
    "user-agent",
    "vary",
    "via",
    "x-client-request-id",
    "x-goog-api-client",
    "x-request-id",
    "x-should-retry",
];
/// The beginnings of further headers whose values are stored: numbers, times and versions.
const STORED_HEADER_STARTS: &[&str] = &[
    "anthropic-ratelimit-",
    "ratelimit-",
    "x-ratelimit-",
    "x-stainless-",
];
/// The query parameters whose values are stored.
const STORED_PARAMETERS: &[&str] = &[
    "after",
    "alt",
    "api-version",
    "before",
    "beta",
    "limit",
    "order",
    "pagesize",
    "stream",
];
/// Parts of the names of headers whose values are masked in bodies, too, whatever they look like.
const SECRET_NAME_PARTS: &[&str] = &[
    "access", "auth", "cookie", "cred", "jwt", "key", "pass", "secret", "session", "sig", "token",
];
/// The minimum length of a value that is masked in bodies, in bytes. Shorter values are more likely
/// words than keys.
const MIN_SECRET_BYTES: usize = 8;

fn is_stored_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    STORED_HEADERS.contains(&name.as_str())
        || STORED_HEADER_STARTS
            .iter()
            .any(|start| name.starts_with(start))
}

/// Returns the headers as they are stored.
pub(crate) fn mask_headers(headers: &[(String, String)], masker: &Masker) -> Vec<(String, String)> {
    let pair = |(name, value): &(String, String)| {
        let value = if is_stored_header(name) {
            masker.mask(value).into_owned()
        } else {
            MASKED.to_owned()
        };
        (name.clone(), value)
    };
    headers.iter().map(pair).collect()
}

/// Returns the path and the query as they are stored.
pub(crate) fn mask_path(path: &str, masker: &Masker) -> String {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    let path = masker.mask(path).into_owned();
    let Some(query) = query else {
        return path;
    };
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name, value)) if is_stored_parameter(name) => {
            format!("{name}={}", masker.mask(value))
        }
        Some((name, _)) => format!("{}={MASKED}", masker.mask(name)),
        None => masker.mask(pair).into_owned(),
    };
    let pairs: Vec<_> = query.split('&').map(pair).collect();
    format!("{path}?{}", pairs.join("&"))
}

fn is_stored_parameter(name: &str) -> bool {
    STORED_PARAMETERS.contains(&name.to_ascii_lowercase().as_str())
}

/// The values of headers that are masked in all recorded text.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct HeaderSecrets {
    /// The values of headers whose names mark a secret.
    pub(crate) keys: Vec<String>,
    /// Other values that look like keys. They can differ in every request.
    pub(crate) random: Vec<String>,
}

/// Returns the values in the headers of a request or reply that are masked in all recorded text.
pub(crate) fn list_header_secrets(headers: &[(String, String)]) -> HeaderSecrets {
    let mut found = HeaderSecrets::default();
    for (name, value) in headers.iter().filter(|(name, _)| !is_stored_header(name)) {
        let name = name.to_ascii_lowercase();
        let mut values = if name == "set-cookie" {
            // The attributes of a cookie are words.
            let cookie = value.split(';').next().unwrap_or_default();
            let assigned = cookie
                .split_once('=')
                .map(|(_, value)| value.trim().to_owned());
            assigned.into_iter().collect()
        } else {
            split_value(value)
        };
        values.extend(decode_basic_login(value));
        values.retain(|one| one.len() >= MIN_SECRET_BYTES);
        if SECRET_NAME_PARTS.iter().any(|part| name.contains(part)) {
            found.keys.extend(values);
        } else {
            found
                .random
                .extend(values.into_iter().filter(|one| looks_random(one)));
        }
    }
    found
}

/// Returns a header's value, the words in it, and what follows `=` in a word.
fn split_value(value: &str) -> Vec<String> {
    let words = value.split([' ', ';', ',', '\t']).flat_map(|word| {
        let assigned = word.split_once('=').map(|(_, value)| value);
        std::iter::once(word).chain(assigned)
    });
    std::iter::once(value.trim())
        .chain(words.map(|word| word.trim_matches(['"', '\''])))
        .map(str::to_owned)
        .collect()
}

/// Returns the login and the password of `Basic` authentication.
fn decode_basic_login(value: &str) -> Vec<String> {
    let Some((scheme, encoded)) = value.trim().split_once(' ') else {
        return Vec::new();
    };
    if !scheme.eq_ignore_ascii_case("basic") {
        return Vec::new();
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded.trim());
    let Some(login) = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok()) else {
        return Vec::new();
    };
    let password = login
        .split_once(':')
        .map(|(_, password)| password.to_owned());
    std::iter::once(login).chain(password).collect()
}

/// Returns the values in a query that are masked in all recorded text, as sent and decoded.
pub(crate) fn list_query_secrets(path: &str) -> Vec<String> {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| !is_stored_parameter(name))
        .flat_map(|(_, value)| [value.to_owned(), decode_query_value(value)])
        .filter(|value| value.len() >= MIN_SECRET_BYTES)
        .collect()
}

fn decode_query_value(value: &str) -> String {
    let bytes = value.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = value.get(at + 1..at + 3);
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(code)) => {
                decoded.push(code);
                at += 3;
            }
            (b'+', _) => {
                decoded.push(b' ');
                at += 1;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// True if a value contains letters and digits, and is longer than most words.
fn looks_random(value: &str) -> bool {
    value.len() >= 16
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(name: &str, value: &str) -> String {
        let pair = (name.to_owned(), value.to_owned());
        mask_headers(&[pair], &Masker::default()).remove(0).1
    }

    #[test]
    fn mask_headers_keeps_only_listed_headers() {
        for name in [
            "Authorization",
            "x-api-key",
            "api-key",
            "X-Goog-Api-Key",
            "cookie",
            "set-cookie",
            "x-auth-token",
            "CF-Access-Client-Secret",
            "Ocp-Apim-Subscription-Key",
            "X-Auth-Key",
            "Helicone-Auth",
            "Proxy-Authorization",
            "X-Amz-Security-Token",
            "X-Anything",
            "Referer",
        ] {
            assert_eq!(masked(name, "secret"), MASKED, "{name}");
        }
        for name in [
            "content-type",
            "anthropic-version",
            "Anthropic-RateLimit-Input-Tokens-Remaining",
            "X-Stainless-OS",
        ] {
            assert_eq!(masked(name, "x"), "x", "{name}");
        }
    }

    #[test]
    fn mask_path_keeps_only_listed_parameters() {
        let masker = Masker::default();
        for (path, stored) in [
            (
                "/v1beta/models/m:x?alt=sse&key=AIza",
                "/v1beta/models/m:x?alt=sse&key=[masked]",
            ),
            ("/v1?API_KEY=1&x", "/v1?API_KEY=[masked]&x"),
            ("/v1/keys", "/v1/keys"),
            (
                "/v1?sig=a&auth=b&subscription-key=c&x-api-key=d&Beta=true",
                "/v1?sig=[masked]&auth=[masked]&subscription-key=[masked]&x-api-key=[masked]&Beta=true",
            ),
        ] {
            assert_eq!(mask_path(path, &masker), stored);
        }
    }

    #[test]
    fn secrets_of_headers_and_queries_are_found() {
        let list = |name: &str, value: &str| {
            let found = list_header_secrets(&[(name.to_owned(), value.to_owned())]);
            [found.keys, found.random].concat()
        };
        let key = "quiet-key-4711-abcdefgh";
        for (name, value) in [
            ("authorization", format!("bearer {key}")),
            ("authorization", format!("BEARER  {key}")),
            ("cookie", format!("a=1; theme={key}; b=2")),
            ("set-cookie", format!("a={key}; Path=/; HttpOnly")),
            ("helicone-auth", format!("Bearer {key}")),
            ("x-anything", key.to_owned()),
            (
                "digest-auth",
                format!("Digest username=\"x\", response=\"{key}\""),
            ),
            (
                "authorization",
                format!(
                    "Basic {}",
                    base64::engine::general_purpose::STANDARD.encode(format!("user:{key}"))
                ),
            ),
        ] {
            let found = list(name, &value);
            assert!(found.iter().any(|one| one == key), "{name}: {found:?}");
        }
        assert_eq!(list("set-cookie", "a=b; HttpOnly"), Vec::<String>::new());
        assert_eq!(list("x-client", "production"), Vec::<String>::new());
        assert_eq!(
            list("user-agent", "agent/1.0 (abc123def456)"),
            Vec::<String>::new()
        );
        assert_eq!(
            list_query_secrets("/x?alt=sse&sig=a%2Fb%3D1234567&x=1"),
            ["a%2Fb%3D1234567", "a/b=1234567"]
        );
    }
}
