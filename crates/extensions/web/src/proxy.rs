//! Selects the proxy for an address, as configured by the caller.

use reqwest::Proxy;
use url::{Host, Url};

/// The proxies for requests to the web. There are none by default; this crate does not read them
/// from the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebProxies {
    /// The proxy for `http://` addresses.
    pub http: Option<String>,
    /// The proxy for `https://` addresses.
    pub https: Option<String>,
    /// Hosts that are reached without a proxy, separated by commas; `*` means all hosts.
    pub except: Option<String>,
}

/// Endings of host names that are used only on private networks.
const PRIVATE_ENDINGS: [&str; 8] = [
    "local",
    "localhost",
    "internal",
    "intranet",
    "lan",
    "corp",
    "home",
    "home.arpa",
];

impl WebProxies {
    /// Returns the proxy for an address, or `None` if the address is reached directly. If a proxy
    /// is invalid, the error does not repeat its address, which may contain a password.
    pub(crate) fn proxy_for(&self, url: &Url) -> Result<Option<Proxy>, String> {
        let named = if url.scheme() == "https" {
            &self.https
        } else {
            &self.http
        };
        let Some(named) = named
            .as_deref()
            .map(str::trim)
            .filter(|named| !named.is_empty())
        else {
            return Ok(None);
        };
        if self.is_excepted(url.host_str().unwrap_or_default()) {
            return Ok(None);
        }
        let wrong = || {
            "the proxy of the environment is not an HTTP proxy; write it as `http://host:port`"
                .to_owned()
        };
        let address = if named.contains("://") {
            named.to_owned()
        } else {
            format!("http://{named}")
        };
        let address = Url::parse(&address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        Proxy::all(address.ok_or_else(wrong)?)
            .map(Some)
            .map_err(|_| wrong())
    }

    fn is_excepted(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_lowercase();
        let names = |entry: &str| {
            let entry = entry
                .trim()
                .trim_start_matches("*.")
                .trim_start_matches('.')
                .to_lowercase();
            entry == "*"
                || !entry.is_empty() && (host == entry || host.ends_with(&format!(".{entry}")))
        };
        self.except
            .as_deref()
            .is_some_and(|list| list.split(',').any(names))
    }
}

/// True if a proxy may be asked for a host name that this machine cannot resolve. False for names
/// that could belong to a private network.
pub(crate) fn can_proxy_resolve(url: &Url) -> bool {
    let Some(Host::Domain(name)) = url.host() else {
        return true;
    };
    let name = name.trim_end_matches('.').to_lowercase();
    let ends_so = |ending: &&str| name == **ending || name.ends_with(&format!(".{ending}"));
    name.contains('.') && !PRIVATE_ENDINGS.iter().any(ends_so)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_is_chosen_by_scheme_with_exceptions() {
        let proxies = WebProxies {
            http: Some("plain:1".into()),
            https: Some("http://secure:2".into()),
            except: Some("localhost, .corp.example, 10.0.0.1".into()),
        };
        let through = |url: &str| {
            proxies
                .proxy_for(&Url::parse(url).unwrap())
                .unwrap()
                .is_some()
        };
        assert!(through("http://example.org/") && through("https://example.org/"));
        for direct in [
            "http://localhost/",
            "https://a.corp.example/",
            "https://corp.example/",
            "http://10.0.0.1/",
        ] {
            assert!(!through(direct), "{direct}");
        }
        assert!(through("https://notcorp.example/"));
        let all = WebProxies {
            except: Some("*".into()),
            ..proxies.clone()
        };
        assert!(
            all.proxy_for(&Url::parse("https://example.org/").unwrap())
                .unwrap()
                .is_none()
        );
        let wrong = WebProxies {
            http: Some("socks5://key:word@h:1".into()),
            ..WebProxies::default()
        };
        let error = wrong
            .proxy_for(&Url::parse("http://example.org/").unwrap())
            .unwrap_err();
        assert!(!error.contains("word"), "{error}");
        assert!(
            WebProxies::default()
                .proxy_for(&Url::parse("http://example.org/").unwrap())
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn private_names_are_not_left_to_a_proxy() {
        for (url, may) in [
            ("http://example.org/", true),
            ("http://wiki/", false),
            ("http://db.internal/", false),
            ("http://printer.local./", false),
            ("http://x.home.arpa/", false),
            ("http://internal.example.org/", true),
        ] {
            assert_eq!(can_proxy_resolve(&Url::parse(url).unwrap()), may, "{url}");
        }
    }
}
