//! The `[web]` section of the configuration.

use serde::{Deserialize, Serialize};

/// The `[web]` section of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebConfig {
    /// If true, the model can read web pages.
    pub crawl: bool,
    /// The search service. Without one the model cannot search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchService>,
    /// The address of the search service: required for `searxng`, optional for the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_url: Option<String>,
    /// The environment variable that holds the API key: required for `brave` and `tavily`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Hosts that may be reached although they are on this machine or its network.
    pub allow_private: Vec<String>,
}

/// A search service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchService {
    /// A `SearXNG` server, with its JSON format switched on.
    Searxng,
    /// Brave Search.
    Brave,
    /// Tavily.
    Tavily,
}
