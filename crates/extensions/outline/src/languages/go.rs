//! Go.

use super::Grammar;

pub(crate) static GRAMMAR: Grammar = Grammar::new(|| tree_sitter_go::LANGUAGE.into(), include_str!("go.scm"));
