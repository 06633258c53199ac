//! Sends queries to web search services.

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use url::Url;

use crate::config::SearchService;
use crate::proxy::WebProxies;

/// The maximum size of a search service's reply, in bytes.
const MAX_REPLY_BYTES: usize = 2 << 20;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A client of a web search service.
#[derive(Clone)]
pub struct Searcher {
    service: SearchService,
    url: Url,
    key: Option<String>,
    client: reqwest::Client,
}

/// The reason why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearcherError {
    /// The `[web]` section is incomplete or invalid.
    #[error("`[web]`: {0}")]
    Config(String),
    /// The service could not be reached, or the connection was interrupted.
    #[error("the search service `{host}` cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    #[error("the search service `{host}` refused with {status}; {hint}")]
    Refused {
        host: String,
        status: u16,
        /// A hint for the user about which setting to check.
        hint: &'static str,
    },
    /// The service's reply is not a list of search results.
    #[error("the search service `{host}` did not answer with results: {why}")]
    InvalidReply {
        host: String,
        /// A description of the problem with the reply.
        why: String,
    },
}

/// A page that a search found: its title, its address, and an excerpt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundPage {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) text: String,
}

impl Searcher {
    /// Creates a client for `service` at `url`, or at the default URL of the service.
    pub fn new(
        service: SearchService,
        url: Option<&str>,
        key: Option<String>,
        proxies: &WebProxies,
    ) -> Result<Self, SearcherError> {
        let usual = match service {
            SearchService::Searxng => None,
            SearchService::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            SearchService::Tavily => Some("https://api.tavily.com/search"),
        };
        let lacks = |what: &str| SearcherError::Config(what.to_owned());
        let url = url.or(usual).ok_or_else(|| {
            lacks("`search = \"searxng\"` needs `search_url`, the server's address")
        })?;
        let url = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
        let mut url = url.ok_or_else(|| {
            lacks("`search_url` is not an address that begins with http:// or https://")
        })?;
        if service == SearchService::Searxng && !url.path().ends_with("/search") {
            url.set_path(&format!("{}/search", url.path().trim_end_matches('/')));
        }
        if key.is_none() && service != SearchService::Searxng {
            return Err(lacks(
                "this search service needs a key; name the variable that holds it in `api_key_env`",
            ));
        }
        // This call fails only if a provider is already installed, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            // Redirects are not followed, because a redirect would send the key to another address.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .timeout(REQUEST_TIMEOUT)
            .no_proxy();
        if let Some(proxy) = proxies.proxy_for(&url).map_err(SearcherError::Config)? {
            builder = builder.proxy(proxy);
        }
        let client = builder
            .build()
            .map_err(|error| SearcherError::Config(error.to_string()))?;
        Ok(Self {
            service,
            url,
            key,
            client,
        })
    }

    /// Returns the host name of the service.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Sends a query to the service and returns at most `max_results` of the pages found.
    pub(crate) async fn search(
        &self,
        query: &str,
        max_results: usize,
    ) -> Result<Vec<FoundPage>, SearcherError> {
        let host = || self.host().to_owned();
        let unreachable = |error: reqwest::Error| {
            let mut cause: &dyn std::error::Error = &error;
            while let Some(inner) = cause.source() {
                cause = inner;
            }
            SearcherError::Unreachable {
                host: host(),
                why: cause.to_string(),
            }
        };
        let reply = self
            .build_request(query, max_results)
            .send()
            .await
            .map_err(unreachable)?;
        let status = reply.status();
        if !status.is_success() {
            let hint = match (status.as_u16(), self.service) {
                (401 | 403, SearchService::Searxng) => {
                    "switch on its JSON format (`search.formats` in settings.yml)"
                }
                (401 | 403, SearchService::Brave | SearchService::Tavily) => {
                    "check the key in `api_key_env`"
                }
                (429, _) => "it was asked too often; try later",
                _ => "check `search_url`",
            };
            return Err(SearcherError::Refused {
                host: host(),
                status: status.as_u16(),
                hint,
            });
        }
        let mut bytes = Vec::new();
        let mut pieces = reply.bytes_stream();
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece.map_err(unreachable)?);
            if bytes.len() > MAX_REPLY_BYTES {
                return Err(SearcherError::InvalidReply {
                    host: host(),
                    why: "it has no end".to_owned(),
                });
            }
        }
        parse_results(self.service, &bytes, max_results)
            .map_err(|why| SearcherError::InvalidReply { host: host(), why })
    }

    fn build_request(&self, query: &str, max_results: usize) -> reqwest::RequestBuilder {
        let mut url = self.url.clone();
        match self.service {
            SearchService::Searxng => {
                url.query_pairs_mut()
                    .append_pair("q", query)
                    .append_pair("format", "json");
                let request = self.client.get(url);
                match &self.key {
                    Some(key) => request.bearer_auth(key),
                    None => request,
                }
            }
            SearchService::Brave => {
                url.query_pairs_mut()
                    .append_pair("q", query)
                    .append_pair("count", &max_results.to_string());
                self.client.get(url).header(
                    "x-subscription-token",
                    self.key.as_deref().unwrap_or_default(),
                )
            }
            SearchService::Tavily => self
                .client
                .post(url)
                .bearer_auth(self.key.as_deref().unwrap_or_default())
                .header("content-type", "application/json")
                .body(json!({ "query": query, "max_results": max_results }).to_string()),
        }
    }
}

fn parse_results(
    service: SearchService,
    bytes: &[u8],
    max_results: usize,
) -> Result<Vec<FoundPage>, String> {
    let reply: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON ({error})"))?;
    let (list, text) = match service {
        SearchService::Searxng | SearchService::Tavily => ("/results", "content"),
        SearchService::Brave => ("/web/results", "description"),
    };
    let found = match reply.pointer(list) {
        Some(Value::Array(found)) => found.as_slice(),
        // The reply of Brave has no list if nothing was found.
        None if service == SearchService::Brave && reply.is_object() => &[],
        Some(_) | None => return Err(format!("it has no list `{}`", list.trim_start_matches('/'))),
    };
    let part = |one: &Value, key: &str| {
        haft_text::sanitize(
            one.get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .trim(),
        )
        .replace('\n', " ")
    };
    let all = found.iter().map(|one| FoundPage {
        title: part(one, "title"),
        url: part(one, "url"),
        text: part(one, text),
    });
    Ok(all
        .filter(|one| !one.url.is_empty())
        .take(max_results)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_parses_the_reply_of_each_service() {
        let one = FoundPage {
            title: "T".into(),
            url: "https://e.org/".into(),
            text: "about".into(),
        };
        for (service, reply) in [
            (
                SearchService::Searxng,
                json!({"results": [{"title": "T", "url": "https://e.org/", "content": "about"}]}),
            ),
            (
                SearchService::Tavily,
                json!({"results": [{"title": "T", "url": "https://e.org/", "content": "about", "score": 1}]}),
            ),
            (
                SearchService::Brave,
                json!({"web": {"results": [{"title": "T", "url": "https://e.org/", "description": "about"}]}}),
            ),
        ] {
            assert_eq!(
                parse_results(service, reply.to_string().as_bytes(), 5),
                Ok(vec![one.clone()]),
                "{service:?}"
            );
        }
        assert_eq!(
            parse_results(SearchService::Brave, b"{}", 5),
            Ok(Vec::new())
        );
        assert!(
            parse_results(SearchService::Searxng, b"{}", 5)
                .unwrap_err()
                .contains("results")
        );
        assert!(
            parse_results(SearchService::Tavily, b"<html>", 5)
                .unwrap_err()
                .contains("not JSON")
        );
    }

    #[test]
    fn searcher_error_names_the_missing_setting() {
        let why = |service, url: Option<&str>, key: Option<&str>| {
            Searcher::new(service, url, key.map(str::to_owned), &WebProxies::default())
                .err()
                .unwrap()
                .to_string()
        };
        assert!(why(SearchService::Searxng, None, None).contains("`search_url`"));
        assert!(why(SearchService::Searxng, Some("nonsense"), None).contains("not an address"));
        assert!(why(SearchService::Brave, None, None).contains("`api_key_env`"));
        let searxng = Searcher::new(
            SearchService::Searxng,
            Some("http://h:8080/"),
            None,
            &WebProxies::default(),
        )
        .unwrap();
        assert_eq!(searxng.url.as_str(), "http://h:8080/search");
    }
}
