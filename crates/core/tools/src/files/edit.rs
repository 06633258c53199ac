//! Shared by the tools that edit text: finding places in a text, loading and checking the files of
//! a call, and reporting a change.
//!
//! `blocks`, `strings` and `nearest` are pure; `source` reads files, and `drafts` carries out the
//! change.

pub(crate) mod blocks;
pub(crate) mod drafts;
pub(crate) mod edit_report;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz_check;
pub(crate) mod lines;
pub(crate) mod nearest;
pub(crate) mod source;
pub(crate) mod strings;
