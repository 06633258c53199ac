//! Rust.

use super::Grammar;
use crate::packed;

pub(crate) static GRAMMAR: Grammar = Grammar::new(&packed::RUST, include_str!("rust.scm"));
