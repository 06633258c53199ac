//! Proxies between this machine and the web, as whoever configures the tools names them.

use reqwest::Proxy;
use url::{Host, Url};

/// The proxies of a machine; none by default. No environment is asked for them here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebProxies {
    /// For addresses that begin with `http://`.
    pub http: Option<String>,
    /// For addresses that begin with `https://`.
    pub https: Option<String>,
    /// Hosts that are reached without one, with commas between them; `*` is all of them.
    pub except: Option<String>,
}

/// Names that mean something on a private network only.
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
    /// The proxy through which an address is reached; none where it is reached directly. What is no
    /// address of a proxy is an error, which does not repeat it: it may hold a password.
    pub(crate) fn of(&self, url: &Url) -> Result<Option<Proxy>, String> {
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

/// Whether a name that this machine cannot resolve may be left to a proxy: one that could be of a
/// private network may not.
pub(crate) fn may_be_left_to_proxy(url: &Url) -> bool {
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
    fn the_scheme_chooses_the_proxy_and_exceptions_hold() {
        let proxies = WebProxies {
            http: Some("plain:1".into()),
            https: Some("http://secure:2".into()),
            except: Some("localhost, .corp.example, 10.0.0.1".into()),
        };
        let through = |url: &str| proxies.of(&Url::parse(url).unwrap()).unwrap().is_some();
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
            all.of(&Url::parse("https://example.org/").unwrap())
                .unwrap()
                .is_none()
        );
        let wrong = WebProxies {
            http: Some("socks5://key:word@h:1".into()),
            ..WebProxies::default()
        };
        let error = wrong
            .of(&Url::parse("http://example.org/").unwrap())
            .unwrap_err();
        assert!(!error.contains("word"), "{error}");
        assert!(
            WebProxies::default()
                .of(&Url::parse("http://example.org/").unwrap())
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn names_of_private_networks_are_not_left_to_a_proxy() {
        for (url, may) in [
            ("http://example.org/", true),
            ("http://wiki/", false),
            ("http://db.internal/", false),
            ("http://printer.local./", false),
            ("http://x.home.arpa/", false),
            ("http://internal.example.org/", true),
        ] {
            assert_eq!(
                may_be_left_to_proxy(&Url::parse(url).unwrap()),
                may,
                "{url}"
            );
        }
    }
}
