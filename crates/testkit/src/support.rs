//! Test support besides the model: a clock and ids that don't vary, a temporary home, readable
//! comparisons, campaigns.

mod assert;
mod campaign;
mod client;
mod clock;
mod home;
mod hostile_text;
mod ids;
mod mcp;
mod mcp_login;
mod random;

pub use assert::{assert_all_replied, assert_equivalent, assert_runs_equivalent};
pub use campaign::{Campaign, CampaignError, HaftCase, Setup, Summary, Tally, Trial};
pub use client::{RawClient, RawReply};
pub use clock::FakeClock;
pub use home::{HomeError, TempHome};
pub use hostile_text::hostile_commands;
pub use ids::SequentialIds;
pub use mcp::{McpServer, Revision, SHELL_MCP_SERVER};
pub use mcp_login::visit_url;
pub use random::Random;
