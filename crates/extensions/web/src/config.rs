//! The `[web]` section of the configuration.

use serde::{Deserialize, Serialize};

/// The `[web]` section of the configuration, which enables reading web pages and searching the web.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebConfig {
    /// True if the model can read web pages.
    pub crawl: bool,
    /// The search service. If absent, the model cannot search the web.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchService>,
    /// The URL of the search service. Required for `searxng`, optional for the other services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_url: Option<String>,
    /// The environment variable that contains the API key. Required for `brave` and `tavily`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Hosts that may be reached even if they are on this machine or a private network.
    pub allow_private: Vec<String>,
}

/// A web search service, which answers the model's searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchService {
    /// A `SearXNG` server whose JSON format is enabled.
    Searxng,
    Brave,
    Tavily,
}
