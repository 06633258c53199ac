//! Tools that start other agents and send messages to running ones.

pub(crate) mod run_named_subagents;
pub(crate) mod talk_to;
pub(crate) mod talk_to_group;
