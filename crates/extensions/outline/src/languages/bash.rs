//! Bash.

use super::Grammar;

pub(crate) static GRAMMAR: Grammar = Grammar::new(|| tree_sitter_bash::LANGUAGE.into(), include_str!("bash.scm"));
