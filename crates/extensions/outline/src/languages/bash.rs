//! Bash.

use super::Grammar;
use crate::packed;

pub(crate) static GRAMMAR: Grammar = Grammar::new(&packed::BASH, include_str!("bash.scm"));
