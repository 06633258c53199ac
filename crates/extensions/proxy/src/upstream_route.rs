//! Connects to an upstream, either directly or through the HTTP proxy that the environment sets for
//! it.
//!
//! The proxy is asked for a `CONNECT` tunnel even for `http` upstreams, so that it forwards bytes
//! without changing them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::ProxyError;

/// The HTTP proxies for upstream connections, configured like `HTTP_PROXY`, `HTTPS_PROXY` and
/// `NO_PROXY`.
#[derive(Clone, Debug, Default)]
pub struct UpstreamProxies(Option<Arc<Matcher>>);

impl UpstreamProxies {
    /// Creates the configuration from a proxy for `http` upstreams, a proxy for `https` upstreams,
    /// and the hosts that are reached directly. Fails if a proxy is not an HTTP proxy.
    pub fn new([http, https, except]: [Option<String>; 3]) -> Result<Self, ProxyError> {
        for proxy in [&http, &https].into_iter().flatten() {
            // The proxy's URL may contain a password, so the error repeats only the scheme.
            if let Some((scheme, _)) = proxy
                .split_once("://")
                .filter(|(scheme, _)| *scheme != "http")
            {
                return Err(ProxyError::Scheme {
                    scheme: scheme.to_owned(),
                });
            }
        }
        let text = Option::unwrap_or_default;
        let matcher = Matcher::builder()
            .http(text(http))
            .https(text(https))
            .no(text(except))
            .build();
        Ok(Self(Some(Arc::new(matcher))))
    }
}

/// Opens connections to upstreams, through an HTTP proxy if one is configured for the upstream.
#[derive(Clone)]
pub(crate) struct UpstreamConnector {
    pub(crate) http: HttpConnector,
    pub(crate) proxies: UpstreamProxies,
}

type ConnectError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for UpstreamConnector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(proxy) = self
            .proxies
            .0
            .as_ref()
            .and_then(|proxies| proxies.intercept(&to))
        else {
            let connecting = self.http.call(to);
            return Box::pin(async move { connecting.await.map_err(Into::into) });
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.http.clone());
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        let connecting = tunnel.call(to);
        Box::pin(async move { connecting.await.map_err(Into::into) })
    }
}
