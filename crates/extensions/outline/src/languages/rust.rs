//! Rust.

use super::Grammar;

pub(crate) static GRAMMAR: Grammar = Grammar::new(|| tree_sitter_rust::LANGUAGE.into(), include_str!("rust.scm"));
