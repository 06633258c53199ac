//! C.

use super::Grammar;
use crate::packed;

pub(crate) static GRAMMAR: Grammar = Grammar::new(&packed::C, include_str!("c.scm"));
