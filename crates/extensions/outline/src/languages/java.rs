//! Java.

use super::Grammar;
use crate::packed;

pub(crate) static GRAMMAR: Grammar = Grammar::new(&packed::JAVA, include_str!("java.scm"));
