//! The Claude dialect: haft as a replacement for Claude Code, and the JSON lines with which a
//! program drives a run.
//!
//! haft uses this dialect when it is called by the name `claude`, or with `--compat claude`. This
//! crate translates Claude Code's command line ([`lower_arguments`]) and the options that haft has
//! no flags for ([`ClaudeOptions`]), translates tool names ([`ToolNaming`]), converts events to the
//! messages of Claude's SDKs ([`ClaudeMessages`]), and handles the control protocol over standard
//! input ([`StreamControl`]), which haft's own `--input-format stream-json` shares ([`Dialect`]).
//!
//! This crate must not print or read the environment: the binary passes in both streams and formats
//! every [`ClaudeNotice`].
//!
//! Read first: [`StreamControl`], [`ClaudeMessages`], [`ClaudeOptions`].

mod arguments;
mod claude_lines;
mod claude_messages;
mod client_hooks;
#[cfg(feature = "mcp")]
mod client_servers;
mod dialect;
mod error;
mod lines;
mod notice;
mod options;
mod permission_updates;
mod stream_control;
mod tool_names;

pub use arguments::{ClaudeCommandLine, lower_arguments, version_line};
pub use claude_messages::{ClaudeMessages, Introduction, PartialMessages};
pub use client_hooks::parse_client_hooks;
#[cfg(feature = "mcp")]
pub use client_servers::ClientServers;
pub use dialect::{Dialect, UserPrompt};
pub use error::ClaudeError;
pub use lines::{ApprovalDecision, ControlLine, FormDecision, InputLine};
pub use notice::ClaudeNotice;
pub use options::{ClaudeOptions, RunSettings, translate_model_name};
pub use stream_control::{
    ClientOffer, ClientSetup, ClientTerms, FindModel, PrintLine, RequestedModel, StreamControl,
};
pub use tool_names::{ClaudeCall, ToolNaming};

/// The version of Claude Code that is reported to its SDKs. They reject versions that are too old
/// for them, or warn about such versions. Nothing else depends on this version.
const CLAUDE_CODE_VERSION: &str = "2.1.0";
