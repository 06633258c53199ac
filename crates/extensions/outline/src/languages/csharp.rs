//! C#.

use super::Grammar;
use crate::packed;

pub(crate) static GRAMMAR: Grammar = Grammar::new(&packed::C_SHARP, include_str!("csharp.scm"));
