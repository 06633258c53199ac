//! Standard input as a stream of JSON lines that drives a session (`--input-format stream-json`).
//!
//! A thread reads lines and sorts them by what they are for ([`StreamControl`]): prompts wait for
//! their turn, an interrupt cancels the turn that runs, an answer goes to the call that asked.
//! Invariant: nothing that is asked waits for ever: at the end of the input, and when its turn is
//! cancelled, the answer is no.

mod claude;
mod client;
mod control;
mod dialect;
mod lines;

#[cfg(feature = "mcp")]
pub(crate) use client::ClientServers;
pub(crate) use client::hooks_of;
pub(crate) use control::{ClientTerms, ModelWish, StreamApprover, StreamControl};
pub(crate) use dialect::{Dialect, UserPrompt};
pub(crate) use lines::{ControlLine, InputLine};
