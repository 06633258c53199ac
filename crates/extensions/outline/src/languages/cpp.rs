//! C++.

use super::Grammar;

pub(crate) static GRAMMAR: Grammar = Grammar::new(|| tree_sitter_cpp::LANGUAGE.into(), include_str!("cpp.scm"));
