//! The `[web]` section.

use serde::{Deserialize, Serialize};

/// The `[web]` section of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebConfig {
    /// Whether the model is offered to read pages.
    pub crawl: bool,
    /// Who is asked when the model searches; without one it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchService>,
    /// Where that is: needed for `searxng`, another address for the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_url: Option<String>,
    /// The environment variable that holds its key: needed for `brave` and `tavily`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Hosts that may be reached although they are on this machine or its network.
    pub allow_private: Vec<String>,
}

/// Who searches.
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
