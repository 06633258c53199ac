//! MCP servers behind a tool and a catalogue of deferred tools: their configuration, their life,
//! and what they offer.
//!
//! A server is started when something of it is first used, never before. What it offers is kept on
//! disk, so that a model can be told of it without a server. This crate reads no environment and
//! decides nothing about permission: it receives values, folders, the guard of starting programs and
//! the approver who answers a server's questions. The official SDK is used in `sdk` alone; none of
//! its types leave that module.
//!
//! Read first: [`McpExtension`] (what a session gets), [`gather`] (which servers there are),
//! [`Servers`] (their life), [`UseMcpTool`] (what the model calls), [`ServerCatalogue`] (what it can
//! find).
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use haft_mcp::{ServerConfig, gather};
//!
//! let docs = ServerConfig { url: Some("https://mcp.example.com".to_owned()), ..ServerConfig::default() };
//! let lame = ServerConfig::default();
//! let declared = BTreeMap::from([("docs".to_owned(), docs), ("lame".to_owned(), lame)]);
//! let gathered = gather(&declared, Path::new("config.toml"), None, Path::new("/project"), &|_| None);
//! assert_eq!(gathered.servers[0].reach.to_string(), "https://mcp.example.com");
//! assert!(gathered.problems[0].to_string().contains("it has neither `command` nor `url`"));
//! ```

mod cache;
mod catalogue;
mod config;
mod document;
mod error;
mod expand;
mod extension;
mod form;
mod gather;
mod listing;
mod login;
mod output;
mod project;
mod scope;
mod sdk;
mod server;
mod servers;
mod use_mcp_tool;

pub use cache::Cache;
pub use catalogue::ServerCatalogue;
pub use config::{OauthConfig, Protocol, ServerConfig, ServerReach, ServerSandbox, ToolFilter};
pub use document::ServerDocument;
pub use error::McpError;
pub use extension::{
    DeclaredServers, GivenServers, McpExtension, PREFIX, ToolNameError, gather_servers,
    server_rules, split_tool_name,
};
pub use gather::{Gathered, ProjectFile, gather, gather_given};
pub use listing::{PromptArgument, PromptInfo, ResourceInfo, ServerListing, ToolInfo};
pub use login::{Login, login};
pub use output::{AnswerContent, ServerAnswer};
pub use sdk::Elicitor;
pub use server::{
    LinkedServer, Oauth, ServerConfinement, ServerDefinition, ServerEndpoint, ServerLink,
    ServerOrigin, ServerProblem,
};
pub use servers::{Confines, ServerHost, ServerState, Servers};
pub use use_mcp_tool::UseMcpTool;
