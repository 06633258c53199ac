//! How a provider's server is reached: through which proxy, trusting whom.

use std::time::Duration;

use reqwest::{Certificate, Client, NoProxy, Proxy, Url};

use crate::config::ProviderConfig;

/// Connections may rest between requests this long: a person thinks for minutes.
const POOL_IDLE: Duration = Duration::from_mins(5);

/// Makes HTTP clients for one provider.
pub(super) struct Connector {
    proxy: Option<Proxy>,
    trusted: Vec<Certificate>,
    /// Whether anything on the way speaks TLS.
    tls: bool,
}

impl Connector {
    /// Reads the declaration, and the certificates it names. The error says which field is wrong
    /// and why.
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
            .map(|named| proxy(named, provider.no_proxy.as_deref()))
            .transpose()?;
        let trusted = provider
            .ca_file
            .as_deref()
            .map(certificates)
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

    /// A client with a pool of connections of its own.
    pub(super) fn client(&self, connect_timeout: Duration) -> Result<Client, reqwest::Error> {
        // Fails only if a provider is installed already, which is just as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            .tcp_nodelay(true)
            // A redirect would take the key elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            // This crate asks no environment for a proxy; the declaration names it.
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

fn proxy(named: &str, except: Option<&str>) -> Result<Proxy, String> {
    // A proxy's URL may hold a password: it is not repeated.
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

fn certificates(path: &str) -> Result<Vec<Certificate>, String> {
    let pem =
        std::fs::read(path).map_err(|error| format!("`ca_file`: cannot read `{path}`: {error}"))?;
    let found = Certificate::from_pem_bundle(&pem).map_err(|error| {
        format!(
            "`ca_file`: `{path}` is not PEM: {}",
            super::failure::cause(&error)
        )
    })?;
    if found.is_empty() {
        return Err(format!("`ca_file`: `{path}` holds no certificate in PEM"));
    }
    Ok(found)
}
