//! What haft knows of a project, and whether it may be obeyed.
//!
//! A folder is untrusted until its user says otherwise: until then nothing of it is run and nothing it says is obeyed. This
//! crate only looks at files and keeps the list of trusted folders; it runs nothing, and it reads no environment.
//!
//! Read first: [`TrustList`] (who is trusted), [`Footprint`] (what trust is given to), [`Ground`] (where knowledge is looked
//! for). Each kind of knowledge has a module with a `load`: [`rules`], [`instructions`], [`agents`], [`skills`],
//! [`commands`], [`external`], [`library`], [`modules`], [`active`], [`hooks`]; an extension reads a kind of its own with [`load_files`]. What is wrong with
//! a file is a [`Problem`] that names it; the rest works.

pub mod active;
pub mod agents;
pub mod commands;
mod compat;
pub mod external;
mod file;
pub mod footprint;
mod front_matter;
mod ground;
pub mod hooks;
pub mod instructions;
pub mod library;
pub mod modules;
mod named;
mod problem;
mod replace;
pub mod rules;
pub mod skills;
mod trust;

pub use footprint::Footprint;
pub use ground::{Folder, Ground, Kind, Level};
pub use named::{By, Found, Named, Shadowed, load_files};
pub use problem::Problem;
pub use trust::{Standing, TrustError, TrustList};
