//! Everything that haft reads of a project, and whether the project is trusted.
//!
//! A folder is untrusted until its user trusts it: before that, nothing in it is run and none of
//! its instructions are followed. This crate only reads files and keeps the list of trusted
//! folders; it must not run anything and must not read the environment.
//!
//! Read first: [`TrustList`] (the trusted folders), [`Footprint`] (what a user trusts),
//! [`KnowledgePaths`] (the folders that are searched). Each kind of knowledge has a module, most
//! with a `load_…` function: [`rules`], [`instructions`], [`agents`], [`skills`], [`commands`],
//! [`external`], [`library`], [`module_documents`], [`active_context`], [`hooks`]; an extension
//! loads a kind of its own with [`load_files`]. A defect of a file is reported as a
//! [`FileProblem`]; the other files still work.
//!
//! ```
//! use haft_project::{KnowledgePaths, TrustList, TrustState, rules};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (project, user) = (folder.path().join("project"), folder.path().join("user"));
//! # std::fs::create_dir_all(project.join(".haft/rules"))?;
//! std::fs::write(project.join(".haft/rules/style.md"), "---\nalwaysApply: true\n---\nUse tabs.\n")?;
//! let trust = TrustList::at_path(folder.path().join("trust.toml"));
//! assert_eq!(trust.trust_state(&project)?, TrustState::Untrusted);
//!
//! let (root, cwd) = (project.clone(), project.clone());
//! let mut knowledge = KnowledgePaths { root, cwd, trusted: false, user, home: None };
//! let mut problems = Vec::new();
//! assert!(rules::load_rules(&knowledge, &mut problems).is_empty());
//! knowledge.trusted = true;
//! assert_eq!(rules::load_rules(&knowledge, &mut problems)[0].name, "style");
//! # Ok(())
//! # }
//! ```

pub mod active_context;
pub mod agents;
pub mod chat_memory;
mod command_template;
pub mod commands;
mod compat;
pub mod external;
mod file_reading;
pub mod footprint;
mod front_matter;
pub mod hooks;
pub mod instructions;
mod knowledge;
pub mod library;
pub mod module_documents;
mod named;
mod named_files;
mod problem;
mod project_commands;
pub mod rules;
pub mod skills;
mod trust;

pub use footprint::Footprint;
pub use knowledge::{KnowledgeFolder, KnowledgeKind, KnowledgePaths, Level};
pub use named::{Named, NamedItems, Shadowed, ShadowedBy, load_files};
pub use problem::FileProblem;
pub use project_commands::{ProjectCommand, ProjectCommandKind, list_project_commands};
pub use trust::{ServerGrant, TrustError, TrustList, TrustRecord, TrustState};
