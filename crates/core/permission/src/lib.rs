//! Decides whether a tool call is allowed, needs an approval, or is denied.
//!
//! A decision follows from the permission mode, the rules, the call, and the workspace. This crate
//! must not run programs, ask the user, or store anything; the engine does that. It reads the disk
//! only to resolve links, to expand file name patterns, and to find files that rules name.
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

mod builtin;
mod config;
mod decide;
mod domain;
mod effects;
mod files;
#[cfg(any(test, fuzzing))]
mod fuzz_check;
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
#[cfg(any(test, fuzzing))]
pub use fuzz_check::check_command_line;
pub use programs::find_program_names;
pub use request::{PermissionRequest, ProjectFiles};
pub use rule::{PermissionRule, RuleError};
pub use rules::{ActiveRule, PermissionRules, RuleOrigin, RulesError};
pub use verdict::{PartVerdict, Verdict};
