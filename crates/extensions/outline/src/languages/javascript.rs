//! JavaScript.

use super::Grammar;
use crate::packed;

pub(crate) static GRAMMAR: Grammar = Grammar::new(&packed::JAVASCRIPT, include_str!("javascript.scm"));
