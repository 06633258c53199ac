//! Sub-agents and messages between the agents of a process.
//!
//! [`roster`] lists the agents that a session can start, [`child`] opens and runs one, and [`hub`]
//! delivers messages. Dependencies go one way: `child` uses sessions, but a session reaches `child`
//! only through the function in [`parent::ParentSession`].

pub(crate) mod announcements;
pub(crate) mod background;
pub(crate) mod child;
pub(crate) mod child_start;
pub(crate) mod evidence;
pub mod hub;
pub(crate) mod listing;
pub(crate) mod parent;
pub(crate) mod relay;
pub(crate) mod roster;
pub(crate) mod session_agents;
pub(crate) mod sibling_gate;
