//! Rules of this service.
use super::Rule;

pub(super) static RULES: &[Rule] = &[];
