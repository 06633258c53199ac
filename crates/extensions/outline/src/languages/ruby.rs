//! Ruby.

use super::Grammar;
use crate::packed;

pub(crate) static GRAMMAR: Grammar = Grammar::new(&packed::RUBY, include_str!("ruby.scm"));
