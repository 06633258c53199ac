//! Makes a request smaller. Stored messages never change; every step works on the timeline of
//! [`rounds`](crate::build::rounds).
//!
//! ```text
//! edits           messages that the user and the model (marks) leave out  on purpose, at any size
//! compress        results of finished rounds by rule                      when_free: only if it costs no cache hits
//! prune           old results and large arguments                         above the safe zone; obsolete ones (superseded) first
//! compaction      older rounds behind a summary                           summary_check: checks the summary before it replaces them
//! ladder          whole rounds, then the short system layer               only if all of that was not enough
//! excerpt         results that the model has not seen yet                 only if the newest step alone exceeds the window
//! ```

pub(crate) mod compaction;
pub(crate) mod compress;
pub(crate) mod edits;
pub(crate) mod excerpt;
pub(crate) mod failing_lines;
pub(crate) mod ladder;
pub(crate) mod language;
pub(crate) mod marks;
pub(crate) mod prune;
pub(crate) mod safe_zone;
pub(crate) mod summary_check;
pub(crate) mod superseded;
pub(crate) mod when_free;
pub(crate) mod working;
