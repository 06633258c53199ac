//! Checks, permits, runs and answers the tool calls of a reply.
//!
//! [`run_calls`] takes the calls through these steps in order: [`call_check`], hooks, [`permit`],
//! [`one_call`]. The results for small models then get [`guidance`].

pub(crate) mod approval;
pub(crate) mod caches;
pub(crate) mod call_check;
pub(crate) mod guidance;
pub(crate) mod one_call;
pub(crate) mod permit;
pub(crate) mod progress;
pub(crate) mod repeated_reads;
pub(crate) mod run_calls;
pub(crate) mod strict_json;
