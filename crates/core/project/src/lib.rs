//! What haft knows of a project, and whether it may be trusted.
//!
//! A folder is untrusted until its user says otherwise: until then nothing of it is run and nothing
//! it says is followed. This crate only looks at files and keeps the list of trusted folders; it
//! runs nothing, and it reads no environment.
//!
//! Read first: [`TrustList`] (who is trusted), [`Footprint`] (what trust is given to),
//! [`KnowledgePaths`] (where knowledge is looked for). Each kind of knowledge has a module with a
//! `load`: [`rules`], [`instructions`], [`agents`], [`skills`], [`commands`], [`external`],
//! [`library`], [`modules`], [`active`], [`hooks`]; an extension reads a kind of its own with
//! [`load_files`]. What is wrong with a file is a [`FileProblem`] that names it; the rest works.
//!
//! ```
//! use haft_project::{KnowledgePaths, TrustList, TrustState, rules};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (project, user) = (folder.path().join("project"), folder.path().join("user"));
//! # std::fs::create_dir_all(project.join(".haft/rules"))?;
//! std::fs::write(project.join(".haft/rules/style.md"), "---\nalwaysApply: true\n---\nUse tabs.\n")?;
//! let trust = TrustList::at(folder.path().join("trust.toml"));
//! assert_eq!(trust.state(&project)?, TrustState::Untrusted);
//!
//! let (root, cwd) = (project.clone(), project.clone());
//! let mut knowledge = KnowledgePaths { root, cwd, trusted: false, user, home: None };
//! let mut problems = Vec::new();
//! assert!(rules::load(&knowledge, &mut problems).is_empty());
//! knowledge.trusted = true;
//! assert_eq!(rules::load(&knowledge, &mut problems)[0].name, "style");
//! # Ok(())
//! # }
//! ```

pub mod active;
pub mod agents;
pub mod commands;
mod compat;
pub mod external;
mod file;
pub mod footprint;
mod front_matter;
pub mod hooks;
pub mod instructions;
mod knowledge;
pub mod library;
pub mod memory;
pub mod modules;
mod named;
mod named_files;
mod problem;
pub mod rules;
pub mod skills;
mod trust;

pub use footprint::Footprint;
pub use knowledge::{KnowledgeFolder, KnowledgeKind, KnowledgePaths, Level};
pub use named::{Named, NamedItems, Shadowed, ShadowedBy, load_files};
pub use problem::FileProblem;
pub use trust::{ServerGrant, TrustError, TrustList, TrustRecord, TrustState};
