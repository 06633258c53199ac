//! Connects sessions to MCP servers: reads their declarations, starts them, and offers their tools
//! to the model behind one tool and a searchable catalogue.
//!
//! A server is started when one of its tools, prompts, or resources is first used. Listings are
//! cached on disk, so the model can be told about the tools of a server that isn't running.
//!
//! This crate reads no environment variables and makes no permission decisions: it receives values,
//! folders, the guard for program starts, and the approver that answers questions from servers.
//! Only the module `sdk` uses the official SDK, and none of the SDK's types leave that module.
//!
//! Start with [`McpExtension`] (the servers of a session), [`gather_declared`] (reads
//! declarations), [`Servers`] (starts and calls servers), [`UseMcpTool`] (the tool that the model
//! calls), and [`ServerCatalogue`] (the tools that the model can search).
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use haft_mcp::{ServerConfig, gather_declared};
//!
//! let docs = ServerConfig { url: Some("https://mcp.example.com".to_owned()), ..ServerConfig::default() };
//! let empty = ServerConfig::default();
//! let declared = BTreeMap::from([("docs".to_owned(), docs), ("empty".to_owned(), empty)]);
//! let file = Path::new("config.toml");
//! let gathered = gather_declared(&declared, file, None, Path::new("/project"), &|_| None);
//! assert_eq!(gathered.servers[0].endpoint.to_string(), "https://mcp.example.com");
//! assert!(gathered.problems[0].to_string().contains("it has neither `command` nor `url`"));
//! ```

mod cache;
mod catalogue;
mod config;
mod error;
mod expand;
mod extension;
mod form;
mod gather;
mod listing;
mod login;
mod mcp_json;
mod output;
mod scope;
mod sdk;
mod server;
mod server_document;
mod servers;
mod use_mcp_tool;

pub use cache::ListingCache;
pub use catalogue::ServerCatalogue;
pub use config::{
    OauthConfig, Protocol, ServerConfig, ServerNetwork, ServerReach, ServerSandbox, ToolFilter,
};
pub use error::McpError;
pub use extension::{
    DeclaredServers, GivenServers, McpExtension, PREFIX, ToolNameError, gather_servers,
    server_permission_rules, split_tool_name,
};
pub use gather::{Gathered, ProjectFile, gather_declared, gather_given_servers};
pub use listing::{PromptArgument, PromptInfo, ResourceInfo, ServerListing, ToolInfo};
pub use login::{Login, begin_login};
pub use output::{AnswerContent, ServerAnswer};
pub use sdk::Elicitor;
pub use server::{
    LinkedServer, Oauth, ServerConfinement, ServerDefinition, ServerEndpoint, ServerLink,
    ServerOrigin, ServerProblem,
};
pub use server_document::ServerDocument;
pub use servers::{ServerConfiner, ServerHost, ServerState, Servers};
pub use use_mcp_tool::UseMcpTool;
