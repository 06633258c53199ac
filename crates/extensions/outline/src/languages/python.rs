//! Python.

use super::Grammar;
use crate::packed;

pub(crate) static GRAMMAR: Grammar = Grammar::new(&packed::PYTHON, include_str!("python.scm"));
