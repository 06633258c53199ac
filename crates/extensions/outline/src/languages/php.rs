//! PHP.

use super::Grammar;
use crate::packed;

pub(crate) static GRAMMAR: Grammar = Grammar::new(&packed::PHP, include_str!("php.scm"));
