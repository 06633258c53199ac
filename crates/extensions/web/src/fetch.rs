//! Fetches pages, with limits on the addresses that may be reached and on the size and time of each
//! page.
//!
//! Invariant: no connection is made to an address that is not public, unless the user named the
//! host. This holds for every redirect and every name resolution, because connections are made to
//! exactly the addresses that were checked. A page never exceeds its byte and time limits.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use haft_text::is_public_address;
use haft_tool::{DocumentReader, DocumentSource, DocumentText};

use futures::StreamExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION, USER_AGENT};
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

use crate::page::WebPage;
use crate::proxy::{WebProxies, can_proxy_resolve};
use crate::robots::{ROBOTS_AGENT, Robots};

/// The maximum size of a page after decompression, in bytes. The rest of a larger page is not read.
const MAX_PAGE_BYTES: usize = 5 << 20;
/// The maximum size of a document, in bytes. A larger document is not read, because an incomplete
/// document is useless.
const MAX_DOCUMENT_BYTES: usize = 20 << 20;
/// The number of bytes after which the rest of a `robots.txt` is ignored.
const MAX_ROBOTS_BYTES: usize = 512 << 10;
/// The time limit for fetching a page, including redirects.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of redirects that are followed for one page.
const MAX_REDIRECTS: usize = 5;

/// The reason why a page could not be read.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The requested address is not a valid page address.
    #[error(
        "`{0}` is not the address of a page; it begins with `https://` or `http://` and holds no password"
    )]
    Address(String),
    /// The host is on this machine or a private network, and is not listed in `web.allow_private`.
    #[error(
        "`{0}` is on this machine or a private network and is not reached; the user can name it in `web.allow_private`"
    )]
    Private(String),
    /// The `robots.txt` of the site disallows reading the page.
    #[error(
        "the site asks robots not to read `{0}` (robots.txt); use another source, or ask the user"
    )]
    Robots(String),
    /// The page redirects to another host.
    #[error("`{from}` has moved to another host; call again with `{to}` if that is what you want")]
    MovedToOtherHost {
        /// The address that was requested.
        from: String,
        /// The address to which the page redirects.
        to: String,
    },
    /// The page redirects more often than the limit allows.
    #[error("`{0}` leads from one address to the next without end")]
    TooManyRedirects(String),
    /// The server answered with an error status.
    #[error("`{url}` answers with {status}")]
    Status {
        url: String,
        /// The HTTP status code.
        status: u16,
    },
    /// The content of the page is not text.
    #[error("`{url}` is `{kind}`, not a page; download it if it is needed")]
    NotText {
        url: String,
        /// The content type, such as `image/png`.
        kind: String,
    },
    /// The page is a document, such as a PDF file, that could not be read.
    #[error("`{url}` is {kind} and cannot be read: {why}")]
    Document {
        url: String,
        /// The format of the document.
        kind: &'static str,
        why: String,
    },
    /// The page could not be reached.
    #[error("`{url}` cannot be reached: {why}")]
    Unreachable { url: String, why: String },
}

impl WebError {
    /// Returns the error code for programs. Codes never change.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Address(_) => "invalid_arguments",
            Self::Private(_) => "private_address",
            Self::Robots(_) => "robots",
            Self::MovedToOtherHost { .. } => "moved",
            Self::TooManyRedirects(_) | Self::Unreachable { .. } => "unreachable",
            Self::Status { .. } => "http_status",
            Self::NotText { .. } => "not_text",
            Self::Document { .. } => "document",
        }
    }
}

/// A fetched page, before its conversion to text.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    /// The address of the page after all redirects.
    pub(crate) url: Url,
    pub(crate) content_type: Option<String>,
    pub(crate) bytes: Vec<u8>,
    /// True if the page is larger than the limit and its end is missing.
    pub(crate) cut: bool,
}

/// Fetches pages, within limits on time, size and the addresses that may be reached.
#[derive(Clone)]
pub struct Fetcher {
    client: reqwest::Client,
    private: Arc<Vec<String>>,
    proxies: WebProxies,
    documents: Option<Arc<dyn DocumentReader>>,
}

impl Fetcher {
    /// Creates a fetcher that can reach public hosts and the hosts in `allow_private`.
    pub fn new(allow_private: &[String]) -> Result<Self, WebError> {
        // This call fails only if a provider is already installed, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let private: Arc<Vec<String>> = Arc::new(
            allow_private
                .iter()
                .map(|host| host.trim().to_lowercase())
                .collect(),
        );
        let client = new_client_builder()
            .dns_resolver(Arc::new(GuardedResolver {
                private: Arc::clone(&private),
            }))
            .no_proxy()
            .build()
            .map_err(|error| WebError::Unreachable {
                url: String::new(),
                why: error.to_string(),
            })?;
        Ok(Self {
            client,
            private,
            proxies: WebProxies::default(),
            documents: None,
        })
    }

    /// Sets the proxies through which all requests are sent.
    #[must_use]
    pub fn with_proxies(self, proxies: WebProxies) -> Self {
        Self { proxies, ..self }
    }

    /// Sets the reader for pages that are documents, such as PDF files.
    #[must_use]
    pub fn with_documents(self, documents: Arc<dyn DocumentReader>) -> Self {
        Self {
            documents: Some(documents),
            ..self
        }
    }

    /// Converts a fetched page to the text that a model reads.
    pub(crate) async fn read_page(
        &self,
        fetched: Fetched,
        place: ReadContext<'_>,
    ) -> Result<WebPage, WebError> {
        let path = std::path::PathBuf::from(fetched.url.path());
        let format = self
            .documents
            .as_ref()
            .and_then(|reader| reader.detect_format(&path, &fetched.bytes));
        let (Some(reader), Some(format)) = (self.documents.clone(), format) else {
            return convert_fetched(fetched).await;
        };
        if !is_document(fetched.content_type.as_deref(), &fetched.bytes) {
            return convert_fetched(fetched).await;
        }
        let unread = |why: String| WebError::Document {
            url: fetched.url.to_string(),
            kind: format.name,
            why,
        };
        if fetched.cut {
            return Err(unread(format!(
                "it is larger than {} MB",
                MAX_DOCUMENT_BYTES >> 20
            )));
        }
        let spill = place.spill.to_owned();
        let cancel = place.cancel.clone();
        let bytes = fetched.bytes.clone();
        let read = tokio::task::spawn_blocking(move || {
            reader.read_text(&DocumentSource {
                path: &path,
                bytes: &bytes,
                spill: &spill,
                cancel: &cancel,
            })
        });
        let read = read.await.map_err(|error| unread(error.to_string()))?;
        let DocumentText {
            text,
            truncated: cut,
        } = read.map_err(|error| unread(error.to_string()))?;
        let text = haft_text::sanitize(text.trim()).into_owned();
        Ok(WebPage {
            url: fetched.url,
            title: String::new(),
            text,
            links: Vec::new(),
            cut,
        })
    }

    /// Returns the HTTP client with which an address is fetched. If a proxy will resolve the host
    /// name, this method first checks that the name does not belong to a private address.
    async fn build_client_for(&self, url: &Url) -> Result<reqwest::Client, WebError> {
        let unreachable = |why: String| WebError::Unreachable {
            url: url.to_string(),
            why,
        };
        let Some(proxy) = self.proxies.proxy_for(url).map_err(unreachable)? else {
            return Ok(self.client.clone());
        };
        if let Some(host @ Host::Domain(_)) = url.host()
            && !is_allowed_host(&self.private, &host.to_string())
        {
            let found = tokio::net::lookup_host((host.to_string(), 0)).await;
            let private = match found {
                Ok(mut found) => found.any(|address| !is_public_address(address.ip())),
                Err(_) => !can_proxy_resolve(url),
            };
            if private {
                return Err(WebError::Private(host.to_string()));
            }
        }
        new_client_builder()
            .no_proxy()
            .proxy(proxy)
            .build()
            .map_err(|error| unreachable(error.to_string()))
    }

    /// Fetches a page, unless the `robots.txt` of its site disallows it. `known` caches the rules
    /// of each site.
    pub(crate) async fn fetch_page(
        &self,
        url: &Url,
        known: &mut HashMap<String, Robots>,
    ) -> Result<Fetched, WebError> {
        tokio::time::timeout(PAGE_TIMEOUT, self.fetch_following_redirects(url, known))
            .await
            .unwrap_or_else(|_| {
                Err(WebError::Unreachable {
                    url: url.to_string(),
                    why: "it takes too long".to_owned(),
                })
            })
    }

    async fn fetch_following_redirects(
        &self,
        first: &Url,
        known: &mut HashMap<String, Robots>,
    ) -> Result<Fetched, WebError> {
        let mut url = first.clone();
        for _ in 0..=MAX_REDIRECTS {
            if !self
                .load_robots(&url, known)
                .await?
                .allows(&url[url::Position::BeforePath..url::Position::AfterQuery])
            {
                return Err(WebError::Robots(url.to_string()));
            }
            match self.send_request(&url, MAX_PAGE_BYTES).await? {
                FetchStep::Read(fetched) => return Ok(fetched),
                FetchStep::Moved(to) if to.host_str() == first.host_str() => url = to,
                FetchStep::Moved(to) => {
                    return Err(WebError::MovedToOtherHost {
                        from: first.to_string(),
                        to: to.to_string(),
                    });
                }
            }
        }
        Err(WebError::TooManyRedirects(first.to_string()))
    }

    /// Returns the robots rules for the site of `url`. If the site has no rules, everything may be
    /// read; if its server fails to deliver them, nothing may be read.
    async fn load_robots<'a>(
        &self,
        url: &Url,
        known: &'a mut HashMap<String, Robots>,
    ) -> Result<&'a Robots, WebError> {
        let site = url.origin().ascii_serialization();
        if !known.contains_key(&site) {
            let mut at = url
                .join("/robots.txt")
                .map_err(|_| WebError::Address(url.to_string()))?;
            let mut robots = Robots::default();
            for _ in 0..=MAX_REDIRECTS {
                match self.send_request(&at, MAX_ROBOTS_BYTES).await {
                    Ok(FetchStep::Read(fetched)) => {
                        robots = Robots::parse(&String::from_utf8_lossy(&fetched.bytes));
                    }
                    // A redirect to another host is not followed, because access to that host was
                    // not approved.
                    Ok(FetchStep::Moved(to)) if to.host_str() == url.host_str() => {
                        at = to;
                        continue;
                    }
                    Err(WebError::Status { status, .. }) if status >= 500 => {
                        robots = Robots::disallow_all();
                    }
                    Ok(FetchStep::Moved(_)) | Err(WebError::Status { .. }) => {}
                    Err(error) => return Err(error),
                }
                break;
            }
            known.insert(site.clone(), robots);
        }
        known
            .get(&site)
            .ok_or_else(|| WebError::Address(url.to_string()))
    }

    async fn send_request(&self, url: &Url, largest: usize) -> Result<FetchStep, WebError> {
        self.check_address(url)?;
        let agent = concat!("haft/", env!("CARGO_PKG_VERSION"));
        debug_assert!(agent.starts_with(ROBOTS_AGENT));
        let client = self.build_client_for(url).await?;
        let request = client
            .get(url.clone())
            .header(USER_AGENT, agent)
            .header(ACCEPT, "text/html, text/*, */*;q=0.5");
        let reply = request
            .send()
            .await
            .map_err(|error| to_web_error(url, &error))?;
        let largest = match reply.headers().get(CONTENT_TYPE) {
            Some(kind) if largest == MAX_PAGE_BYTES && is_document(kind.to_str().ok(), &[]) => {
                MAX_DOCUMENT_BYTES
            }
            _ => largest,
        };
        let header = |name| {
            reply
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        if reply.status().is_redirection()
            && let Some(to) = header(LOCATION)
        {
            return url
                .join(&to)
                .map(FetchStep::Moved)
                .map_err(|_| WebError::Address(to));
        }
        if !reply.status().is_success() {
            return Err(WebError::Status {
                url: url.to_string(),
                status: reply.status().as_u16(),
            });
        }
        let content_type = header(CONTENT_TYPE);
        let mut fetched = Fetched {
            url: url.clone(),
            content_type,
            bytes: Vec::new(),
            cut: false,
        };
        let mut pieces = reply.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| to_web_error(url, &error))?;
            let room = largest - fetched.bytes.len();
            fetched
                .bytes
                .extend_from_slice(piece.get(..room).unwrap_or(&piece));
            if piece.len() > room {
                fetched.cut = true;
                break;
            }
        }
        Ok(FetchStep::Read(fetched))
    }

    /// Checks that an address may be requested. Host names are checked later, when they are
    /// resolved.
    fn check_address(&self, url: &Url) -> Result<(), WebError> {
        let wrong = || WebError::Address(url.to_string());
        if !matches!(url.scheme(), "http" | "https")
            || !url.username().is_empty()
            || url.password().is_some()
        {
            return Err(wrong());
        }
        let address: Option<IpAddr> = match url.host().ok_or_else(wrong)? {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
        };
        let host = url.host_str().unwrap_or_default();
        if address.is_some_and(|address| !is_public_address(address))
            && !is_allowed_host(&self.private, host)
        {
            return Err(WebError::Private(host.to_owned()));
        }
        Ok(())
    }
}

/// Converts fetched bytes to a page, on a thread for blocking work.
async fn convert_fetched(fetched: Fetched) -> Result<WebPage, WebError> {
    let url = fetched.url.to_string();
    let failed = |error: tokio::task::JoinError| WebError::Unreachable {
        url,
        why: error.to_string(),
    };
    tokio::task::spawn_blocking(|| WebPage::from_fetched(fetched))
        .await
        .map_err(failed)?
}

fn new_client_builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
}

/// The folder in which a document may be stored while it is being read, and the token with which
/// reading is canceled.
#[derive(Clone, Copy)]
pub(crate) struct ReadContext<'a> {
    pub(crate) spill: &'a std::path::Path,
    pub(crate) cancel: &'a CancellationToken,
}

/// True for PDF and office files. PDF files are detected by content type or by their first bytes.
/// Office files are archives, so they are detected by content type alone.
fn is_document(content_type: Option<&str>, bytes: &[u8]) -> bool {
    let kind = content_type.unwrap_or_default().to_ascii_lowercase();
    bytes.starts_with(b"%PDF-")
        || kind.starts_with("application/pdf")
        || kind.contains("officedocument")
}

enum FetchStep {
    Read(Fetched),
    Moved(Url),
}

fn is_allowed_host(private: &[String], host: &str) -> bool {
    let host = host.trim_end_matches('.').to_lowercase();
    private.contains(&host)
}

/// A DNS resolver that rejects a host name with a private address, unless the user allowed the
/// host.
struct GuardedResolver {
    private: Arc<Vec<String>>,
}

/// The error for a host name that resolves to a private address.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` has a private address")]
struct PrivateName(String);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let private = Arc::clone(&self.private);
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            if !is_allowed_host(&private, &host)
                && found.iter().any(|address| !is_public_address(address.ip()))
            {
                return Err(PrivateName(host).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn to_web_error(url: &Url, error: &reqwest::Error) -> WebError {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    loop {
        if let Some(PrivateName(host)) = cause.downcast_ref() {
            return WebError::Private(host.clone());
        }
        match cause.source() {
            Some(inner) => cause = inner,
            None => break,
        }
    }
    WebError::Unreachable {
        url: url.to_string(),
        why: cause.to_string(),
    }
}
