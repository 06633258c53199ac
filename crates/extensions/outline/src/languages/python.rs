//! Python.

use super::Grammar;

pub(crate) static GRAMMAR: Grammar = Grammar::new(|| tree_sitter_python::LANGUAGE.into(), include_str!("python.scm"));
