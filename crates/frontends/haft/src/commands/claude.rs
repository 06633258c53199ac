//! What it takes to stand in for Claude Code: its command line, and its names of tools.
//!
//! haft is driven so when it is called by the name `claude`, or with `--compat claude`. The
//! messages themselves are in [`output::claude`](crate::output::claude) and
//! [`stream`](crate::stream).

mod arguments;
mod options;
mod tools;

pub(crate) use arguments::{ClaudeCommandLine, lower, version};
pub(crate) use options::{ClaudeOptions, model_name};
pub(crate) use tools::{ClaudeCall, ToolNaming};

/// The version its SDKs are told. They refuse, or warn of, what is older than they need; nothing
/// else depends on it.
pub(crate) const VERSION: &str = "2.1.0";
