//! Decides whether a tool call is allowed, needs an approval, or is denied.
//!
//! A decision follows from the permission mode, the rules, the call, and the workspace. This crate
//! must not run programs, ask the user, or store anything; the engine does that. It reads the disk
//! only to resolve links, to expand file name patterns, and to find files that rules name, also in
//! the commits of a repository.
//!
//! A command line is parsed as bash parses it (`shell`) and split into all of its effects
//! (`effects`). Every effect must be covered by a rule; a line that cannot be parsed needs an
//! approval.
//!
//! Deny rules are checked first, then ask rules, then allow rules, then the mode. Adding a rule
//! that denies or asks never allows anything, and a project's rules only tighten
//! ([`PermissionRules::tightened_by`]).
//!
//! Read first: [`Permissions::decide`], [`PermissionRule`], [`Verdict`].
//!
//! # A decision
//!
//! ```
//! use haft_permission::{
//!     Confinement, Decision, PermissionMode, PermissionRequest, PermissionRules, Permissions, PermissionsConfig,
//!     Workspace,
//! };
//!
//! // Rules name a tool, and a command, file, host or server tool of its calls.
//! let config = PermissionsConfig {
//!     allow: vec!["execute_command(cargo test:*)".into(), "write_to_file(src/**)".into()],
//!     deny: vec!["execute_command(rm:*)".into()],
//!     ..PermissionsConfig::default()
//! };
//! let permissions = Permissions {
//!     mode: PermissionMode::Ask,
//!     rules: PermissionRules::load(&config, None)?,
//!     confinement: Confinement::None,
//! };
//!
//! // The folders in which calls work. They need not exist.
//! let workspace = Workspace {
//!     root: "/project".into(),
//!     cwd: "/project".into(),
//!     extra: Vec::new(),
//!     spill: "/private/spill".into(),
//!     journal: "/private/journal".into(),
//! };
//! let decide = |line: &str| permissions.decide(&PermissionRequest::for_command(line), &workspace);
//!
//! assert_eq!(decide("cargo test --lib").decision, Decision::Allow);
//!
//! // Every part of a line is decided, including programs started by other programs.
//! let verdict = decide("cargo test && sudo rm -r target");
//! assert_eq!(verdict.decision, Decision::Deny);
//! assert_eq!(verdict.rule.as_deref(), Some("execute_command(rm:*)"));
//! assert_eq!(verdict.parts.len(), 3);
//!
//! // A redirect is a write, and a line that does not parse needs an approval.
//! assert_eq!(decide("cargo test > ../log").decision, Decision::Ask);
//! assert_eq!(decide("cargo test 'open").decision, Decision::Ask);
//!
//! // The verdict on an approved call names the rules that make the approval unnecessary.
//! assert_eq!(decide("make check").remember, ["execute_command(make check)"]);
//! # Ok::<(), haft_permission::RulesError>(())
//! ```
//!
//! # Calls of tools
//!
//! A request for any other tool states the tool's [`Access`] and its [`Intent`], which lists every
//! file, host or command of the call:
//!
//! ```
//! use haft_permission::{Access, Decision, Intent, PermissionRequest, Permissions, ProjectFiles, Workspace};
//! # let workspace = Workspace {
//! #     root: "/project".into(), cwd: "/project".into(), extra: Vec::new(), spill: "/s".into(), journal: "/j".into(),
//! # };
//!
//! let arguments = serde_json::json!({ "path": "src/main.rs" });
//! let request = PermissionRequest {
//!     tool: "format_file",
//!     access: Access::Write,
//!     intent: Intent::for_write(&arguments, "path"),
//!     requires_approval: false,
//!     leaves_sandbox: false,
//!     project_files: ProjectFiles::Unchanging,
//! };
//! assert_eq!(Permissions::default().decide(&request, &workspace).decision, Decision::Ask);
//! ```
//!
//! # Limits
//!
//! A verdict says what a command is written to do, not what its program does: `cargo test` runs the
//! tests of the project. Confine commands (`haft-sandbox`), and state the confinement in
//! [`Permissions::confinement`].

mod builtin;
mod config;
mod decide;
mod domain;
mod effects;
mod files;
#[cfg(any(test, fuzzing))]
mod fuzz_check;
mod git_history;
mod git_index;
mod git_objects;
mod hosts;
mod line;
mod pattern;
mod programs;
mod protected;
mod remember;
mod request;
mod rule;
mod rules;
mod shape;
mod shell;
#[cfg(test)]
mod tests;
mod verdict;

pub use config::{PermissionsConfig, RuleConfig};
pub use decide::{Confinement, Permissions};
pub use files::UnreadablePaths;
#[cfg(any(test, fuzzing))]
pub use fuzz_check::check_command_line;
pub use programs::find_program_names;
pub use request::{PermissionRequest, ProjectFiles};
pub use rule::{PermissionRule, RuleError};
pub use rules::{ActiveRule, PermissionRules, RuleOrigin, RulesError};
pub use verdict::{PartVerdict, Verdict};

// The values that requests and decisions consist of, so that a program can depend on this crate
// alone.
pub use haft_tool::{Access, FileUse, Intent, Workspace};
pub use haft_types::{Decision, PermissionMode};
