//! C++.

use super::Grammar;
use crate::packed;

pub(crate) static GRAMMAR: Grammar = Grammar::new(&packed::CPP, include_str!("cpp.scm"));
