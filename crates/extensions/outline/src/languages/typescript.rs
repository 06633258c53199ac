//! TypeScript, with and without JSX: two grammars, one query.

use super::Grammar;

const QUERY: &str = include_str!("typescript.scm");

pub(crate) static TYPESCRIPT: Grammar = Grammar::new(|| tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(), QUERY);
pub(crate) static TSX: Grammar = Grammar::new(|| tree_sitter_typescript::LANGUAGE_TSX.into(), QUERY);
