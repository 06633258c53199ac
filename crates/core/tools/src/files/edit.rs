//! Code shared by the tools that edit text: it finds the text to replace, loads and checks the
//! files of a call, and reports a change.
//!
//! `blocks`, `strings` and `nearest` are pure; `source` reads files, and `drafts` carries out the
//! changes.

pub(crate) mod blocks;
pub(crate) mod drafts;
pub(crate) mod edit_report;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz_check;
pub(crate) mod lines;
pub(crate) mod nearest;
pub(crate) mod source;
pub(crate) mod strings;
