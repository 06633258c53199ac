//! PHP.

use super::Grammar;

pub(crate) static GRAMMAR: Grammar = Grammar::new(|| tree_sitter_php::LANGUAGE_PHP.into(), include_str!("php.scm"));
