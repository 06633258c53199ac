//! C.

use super::Grammar;

pub(crate) static GRAMMAR: Grammar = Grammar::new(|| tree_sitter_c::LANGUAGE.into(), include_str!("c.scm"));
