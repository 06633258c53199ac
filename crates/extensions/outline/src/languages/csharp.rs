//! C#.

use super::Grammar;

pub(crate) static GRAMMAR: Grammar = Grammar::new(|| tree_sitter_c_sharp::LANGUAGE.into(), include_str!("csharp.scm"));
