//! TypeScript, with and without JSX: two grammars, one query.

use super::Grammar;
use crate::packed;

const QUERY: &str = include_str!("typescript.scm");

pub(crate) static TYPESCRIPT: Grammar = Grammar::new(&packed::TYPESCRIPT, QUERY);
pub(crate) static TSX: Grammar = Grammar::new(&packed::TSX, QUERY);
