//! Lets further front ends attach to a running session: other terminals, scripts and pages follow
//! its events, answer its questions and send it messages.
//!
//! The process that runs a session listens at a private Unix socket ([`SessionPort`]). Both sides
//! send JSON lines: the events of the session and [`AttachLine`]s to the client, [`ClientLine`]s to
//! the session. Invariants: the first answer to a question wins, and all clients are informed; a
//! message is confirmed once it is in the store; a slow client never delays the session.
//!
//! This crate must not open sessions or print. Lines from the socket are untrusted: their length is
//! bounded, and the other side must belong to this user.
//!
//! Read first: [`AttachLine`] and [`ClientLine`] (the protocol), [`SessionPort`] (the session's
//! side), [`AttachedSession`] (the client's side).

mod approver;
mod client;
mod line_reader;
mod lines;
mod outbox;
mod port;
mod room;
mod server;

pub use client::{
    AttachError, Attachable, AttachedSession, ReceivedLine, SessionSender, find_sessions,
};
pub use lines::{
    ApprovalAnswer, AttachLine, AttachState, ClientLine, FormFilling, PROTOCOL_VERSION, SessionInfo,
};
pub use port::{PortSettings, SessionPort};
