//! Whether a call may run: allowed, asked, or denied.
//!
//! A decision is made from the mode, the rules, the call and the workspace. Nothing is run to make
//! it, and nothing but links is looked up on disk; this crate asks nobody and remembers nothing,
//! that is the engine's work.
//!
//! A command line is read like bash reads it ([`shell`]), taken apart into everything it does
//! ([`effects`]), and every part must be covered by a rule; what is not understood is asked.
//!
//! Order: deny, then ask, then allow, then the mode. Adding a rule that denies or asks never allows
//! anything, and a project's rules only tighten ([`PermissionRules::tightened_by`]).
//!
//! Read first: [`Permissions::decide`], [`PermissionRule`], [`Verdict`].

mod builtin;
mod config;
mod decide;
mod domain;
mod effects;
mod files;
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
pub use programs::program_names;
pub use request::{PermissionRequest, ProjectFiles};
pub use rule::{PermissionRule, RuleError};
pub use rules::{ActiveRule, PermissionRules, RuleOrigin, RulesError};
pub use verdict::{PartVerdict, Verdict};
