//! From settings to a running agent: configuration layers, wiring, the real clock and ids.
//!
//! Every front end opens sessions through this crate and nowhere else. It is given the environment of a process and the folders to
//! work in as values ([`HostEnvironment`], [`Places`]); it reads no environment, home folder or terminal, and names no extension:
//! those are registered through [`Extension`].
//!
//! Read first: [`Agent`] (who opens sessions), [`RunPlan`] (what one run is told), [`config::Config`] (what is configured),
//! [`Extension`] (what is registered beside the core).

mod agent;
mod clock;
pub mod config;
mod environment;
mod error;
mod extension;
mod hooks;
mod keys;
mod knowledge;
mod machine;
mod models;
mod network;
mod places;
mod plan;
mod project;
mod role;
mod sandbox;
mod spill;
mod store;
mod tool_help;
mod wiring;

pub use agent::Agent;
pub use clock::{RandomIds, WallClock};
pub use environment::HostEnvironment;
pub use error::{ConfigError, FolderError, KeyError, SandboxSetupError, SetupError};
pub use extension::{AbsentExtension, Contribution, Extension, ExtensionContext};
pub use keys::{KeyState, key_of, key_state};
pub use knowledge::knowledge;
pub use models::{configured_model, declared_model};
pub use places::Places;
pub use plan::{RunPlan, RunStep, prompt_file};
pub use project::Project;
pub use role::OwnChoice;
pub use sandbox::{confinement, set_up_sandbox};
pub use store::{open_store, versions};
pub use tool_help::tool_help;
pub use wiring::{permissions, with_rules};
