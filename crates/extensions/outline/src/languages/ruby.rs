//! Ruby.

use super::Grammar;

pub(crate) static GRAMMAR: Grammar = Grammar::new(|| tree_sitter_ruby::LANGUAGE.into(), include_str!("ruby.scm"));
