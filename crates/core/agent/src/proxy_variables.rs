//! The proxy variables of the environment. Settings of a provider take precedence.

use haft_model::{Declared, ProviderConfig};

use crate::environment::HostEnvironment;

/// Sets the proxy of a provider from the environment if the provider declares none, and resolves
/// `~/` in the provider's `ca_file`.
pub(crate) fn apply_proxy_variables(
    environment: &HostEnvironment,
    mut declared: Declared,
) -> Declared {
    declared.provider = with_proxy_variables(declared.provider, |name| environment.variable(name));
    declared
}

/// Returns three settings of the environment: the proxy for `http`, the proxy for `https`, and the
/// hosts that are reached without a proxy.
pub fn environment_proxies(environment: &HostEnvironment) -> [Option<String>; 3] {
    let either = |name: &str| {
        let value = environment
            .variable(&name.to_lowercase())
            .or_else(|| environment.variable(name));
        value.filter(|value| !value.trim().is_empty())
    };
    let all = || either("ALL_PROXY");
    [
        either("HTTP_PROXY").or_else(all),
        either("HTTPS_PROXY").or_else(all),
        either("NO_PROXY"),
    ]
}

/// Applies the proxy variables to a provider: `HTTPS_PROXY` or `HTTP_PROXY`, by the scheme of the
/// provider's URL, else `ALL_PROXY`; and `NO_PROXY`. Lower-case names take precedence.
fn with_proxy_variables(
    mut provider: ProviderConfig,
    variable: impl Fn(&str) -> Option<String>,
) -> ProviderConfig {
    let either = |name: &str| {
        let value = variable(&name.to_lowercase()).or_else(|| variable(name));
        value.filter(|value| !value.trim().is_empty())
    };
    if provider.proxy.is_none() {
        let secure = provider.base_url.trim_start().starts_with("https:");
        provider.proxy = either(if secure { "HTTPS_PROXY" } else { "HTTP_PROXY" })
            .or_else(|| either("ALL_PROXY"));
        // `NO_PROXY` applies only to a proxy that comes from the environment too.
        if provider.no_proxy.is_none() {
            provider.no_proxy = either("NO_PROXY");
        }
    }
    if let (Some(home), Some(rest)) = (
        variable("HOME"),
        provider
            .ca_file
            .as_deref()
            .and_then(|file| file.strip_prefix("~/")),
    ) {
        provider.ca_file = Some(format!("{home}/{rest}"));
    }
    provider
}

#[cfg(test)]
mod tests {
    use haft_types::Api;

    use super::*;

    fn provider(base_url: &str, proxy: Option<&str>) -> ProviderConfig {
        ProviderConfig {
            proxy: proxy.map(str::to_owned),
            ..ProviderConfig::new(Api::OpenaiChat, base_url)
        }
    }

    fn proxy_of(
        provider: ProviderConfig,
        environment: &[(&str, &str)],
    ) -> (Option<String>, Option<String>) {
        let found = |name: &str| {
            environment
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let provider = with_proxy_variables(provider, found);
        (provider.proxy, provider.no_proxy)
    }

    #[test]
    fn with_environment_chooses_the_proxy_by_scheme() {
        let environment = [
            ("HTTP_PROXY", "http://plain:1"),
            ("https_proxy", "http://secure:2"),
            ("NO_PROXY", "h"),
        ];
        let plain = provider("http://a/v1", None);
        let secure = provider("https://a/v1", None);
        assert_eq!(
            proxy_of(plain.clone(), &environment),
            (Some("http://plain:1".into()), Some("h".into()))
        );
        assert_eq!(
            proxy_of(secure.clone(), &environment),
            (Some("http://secure:2".into()), Some("h".into()))
        );
        assert_eq!(
            proxy_of(secure.clone(), &[("ALL_PROXY", "http://all:3")])
                .0
                .as_deref(),
            Some("http://all:3")
        );
        assert_eq!(
            proxy_of(
                plain,
                &[("HTTP_PROXY", " "), ("HTTPS_PROXY", "http://secure:2")]
            ),
            (None, None)
        );
        assert_eq!(proxy_of(secure, &[]), (None, None));
    }

    #[test]
    fn with_environment_keeps_a_declared_proxy() {
        let environment = [("HTTPS_PROXY", "http://secure:2"), ("NO_PROXY", "a")];
        let own = proxy_of(provider("https://a/v1", Some("http://own:1")), &environment);
        assert_eq!(own, (Some("http://own:1".into()), None));
        // Empty: none at all.
        assert_eq!(
            proxy_of(provider("https://a/v1", Some("")), &environment),
            (Some(String::new()), None)
        );
    }

    #[test]
    fn with_environment_expands_home_in_the_ca_file() {
        let named = ProviderConfig {
            ca_file: Some("~/ca.pem".into()),
            ..provider("https://a", None)
        };
        let found = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
        assert_eq!(
            with_proxy_variables(named, found).ca_file.as_deref(),
            Some("/home/me/ca.pem")
        );
    }
}
