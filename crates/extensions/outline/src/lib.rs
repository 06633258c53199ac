//! Finds the names, kinds and lines of the definitions in a source file.
//!
//! The result is a flat list of definitions in the order of their lines, each with its nesting
//! depth. The tree-sitter grammars must stay in this crate, so that nothing else is recompiled with
//! them. [`define_tool`] returns the tool `list_code_definition_names`, which a program registers.
//! This crate must not access files except through the scope of the tool's call.
//!
//! Start with [`outline_source`] (the main function), [`Definition`] (its result),
//! [`SourceLanguage`] (the supported files), and one of the queries in `languages/`, such as
//! `rust.scm`.
//!
//! ```
//! use haft_outline::{DefinitionKind, OutlineLimits, SourceLanguage, outline_source};
//!
//! let source = "struct Cup;\n\nimpl Cup {\n    fn fill(&mut self) {}\n}\n";
//! let found = outline_source(SourceLanguage::Rust, source, OutlineLimits::default(), &|| false)?;
//! let fill = &found.definitions[2];
//! assert_eq!((fill.kind, fill.name.as_str(), fill.start_line, fill.depth), (DefinitionKind::Method, "fill", 4, 1));
//! # Ok::<(), haft_outline::OutlineError>(())
//! ```

mod collect;
mod kind;
mod language;
mod languages;
#[expect(unsafe_code, reason = "grammars are C")]
mod packed;
mod tool;

pub use collect::{Definition, Outline, OutlineError, OutlineLimits, outline_source};
pub use kind::DefinitionKind;
pub use language::SourceLanguage;
pub use tool::define_tool;
