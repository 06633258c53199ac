//! Names, kinds and lines of the definitions in a source file.
//!
//! A source text goes in, a flat list of definitions in order of their lines comes out, each with
//! how deep it lies in others. The tree-sitter grammars live here and nowhere else, so that nothing
//! else is compiled again with them. [`tool`] is what a program registers:
//! `list_code_definition_names`. It reads files only through the scope of its call.
//!
//! Read first: [`outline`] (the one function), [`Definition`] (what comes out), [`SourceLanguage`]
//! (for which files), and one of the queries in `languages/`, such as `rust.scm`.
//!
//! ```
//! use haft_outline::{DefinitionKind, OutlineLimits, SourceLanguage, outline};
//!
//! let source = "struct Cup;\n\nimpl Cup {\n    fn fill(&mut self) {}\n}\n";
//! let found = outline(SourceLanguage::Rust, source, OutlineLimits::default(), &|| false)?;
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

pub use collect::{Definition, Outline, OutlineError, OutlineLimits, outline};
pub use kind::DefinitionKind;
pub use language::SourceLanguage;
pub use tool::tool;
