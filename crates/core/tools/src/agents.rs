//! Tools that reach other agents: work for them, and messages to those that run.

pub(crate) mod run_named_subagents;
pub(crate) mod talk_to;
pub(crate) mod talk_to_group;
