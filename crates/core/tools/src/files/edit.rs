//! What the tools that edit text share: finding places in a text, files as a call wants them, and
//! how a change is shown.
//!
//! `blocks`, `strings` and `nearest` are pure; `source` reads files, `drafts` carries out the
//! change.

pub(crate) mod blocks;
pub(crate) mod drafts;
pub(crate) mod lines;
pub(crate) mod nearest;
pub(crate) mod report;
pub(crate) mod source;
pub(crate) mod strings;
