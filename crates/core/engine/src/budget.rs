//! Tokens, money and time: what a turn has used, its limits, and the budget that it shares with its
//! sub-agents.

pub(crate) mod limits;
pub(crate) mod meter;
pub(crate) mod shared_budget;
pub(crate) mod spending;
