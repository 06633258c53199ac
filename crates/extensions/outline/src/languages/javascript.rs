//! JavaScript.

use super::Grammar;

pub(crate) static GRAMMAR: Grammar =
    Grammar::new(|| tree_sitter_javascript::LANGUAGE.into(), include_str!("javascript.scm"));
