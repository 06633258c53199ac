//! Java.

use super::Grammar;

pub(crate) static GRAMMAR: Grammar = Grammar::new(|| tree_sitter_java::LANGUAGE.into(), include_str!("java.scm"));
