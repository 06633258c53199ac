//! Configures connections to a provider: proxy and trusted certificates.

use std::time::Duration;

use reqwest::{Certificate, Client, NoProxy, Proxy, Url};

use crate::config::ProviderConfig;

/// The time for which idle connections are kept: users think for minutes between requests.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_mins(5);

/// Creates HTTP clients for one provider.
#[derive(Clone)]
pub(super) struct Connector {
    proxy: Option<Proxy>,
    trusted: Vec<Certificate>,
    /// True if the connection to the server or to the proxy uses TLS.
    tls: bool,
}

impl Connector {
    /// Reads the proxy settings and the certificate file. The error names the invalid field and the
    /// problem.
    pub(super) fn new(provider: &ProviderConfig, base: &Url) -> Result<Self, String> {
        let everywhere = provider
            .no_proxy
            .as_deref()
            .is_some_and(|list| list.split(',').any(|host| host.trim() == "*"));
        let named = provider
            .proxy
            .as_deref()
            .map(str::trim)
            .filter(|proxy| !proxy.is_empty() && !everywhere);
        let proxy = named
            .map(|named| parse_proxy(named, provider.no_proxy.as_deref()))
            .transpose()?;
        let trusted = provider
            .ca_file
            .as_deref()
            .map(read_certificates)
            .transpose()?
            .unwrap_or_default();
        let tls =
            base.scheme() == "https" || named.is_some_and(|named| named.starts_with("https:"));
        Ok(Self {
            proxy,
            trusted,
            tls,
        })
    }

    /// Creates a client with its own connection pool.
    pub(super) fn build_client(&self, connect_timeout: Duration) -> Result<Client, reqwest::Error> {
        // Fails only if a provider is already installed, which serves equally well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(connect_timeout)
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .tcp_nodelay(true)
            // A redirect would send the key to another server.
            .redirect(reqwest::redirect::Policy::none())
            // This crate does not read the environment; the proxy comes from the configuration.
            .no_proxy();
        if self.tls {
            builder = builder.tls_certs_merge(self.trusted.iter().cloned());
        } else {
            // Without TLS there is no need to load the system's certificates, which takes longer
            // than the rest of start-up.
            builder = builder.tls_certs_only([]);
        }
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(proxy.clone());
        }
        builder.build()
    }
}

fn parse_proxy(named: &str, except: Option<&str>) -> Result<Proxy, String> {
    // A proxy URL may contain a password, so it is not quoted in errors.
    let wrong = || "`proxy` is not a proxy's URL; write it as `http://host:port`".to_owned();
    let url = if named.contains("://") {
        named.to_owned()
    } else {
        format!("http://{named}")
    };
    let parsed = Url::parse(&url).map_err(|_| wrong())?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!(
            "`proxy`: haft speaks to HTTP proxies only, not to `{}`",
            parsed.scheme()
        ));
    }
    let proxy = Proxy::all(parsed).map_err(|_| wrong())?;
    Ok(proxy.no_proxy(except.and_then(NoProxy::from_string)))
}

fn read_certificates(path: &str) -> Result<Vec<Certificate>, String> {
    let pem =
        std::fs::read(path).map_err(|error| format!("`ca_file`: cannot read `{path}`: {error}"))?;
    let found = Certificate::from_pem_bundle(&pem).map_err(|error| {
        format!(
            "`ca_file`: `{path}` is not PEM: {}",
            super::failure::root_cause_message(&error)
        )
    })?;
    if found.is_empty() {
        return Err(format!("`ca_file`: `{path}` holds no certificate in PEM"));
    }
    Ok(found)
}
