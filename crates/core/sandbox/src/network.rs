//! The network of a confined command, host by host.
//!
//! ```text
//! command ── TCP, loopback of its own namespace ── forward ── Unix socket ── Proxy ── the listed hosts
//! ```
//!
//! The command has no network but a loopback of its own. On it listens [`forward`], which copies
//! every connection to a Unix socket and understands nothing. Behind that socket, in haft, is the
//! [`Proxy`]: it takes `CONNECT` and plain HTTP, asks [`Hosts`] whether the host may be reached,
//! looks up its name itself and connects to an address it has looked at.
//!
//! Invariant: no byte leaves towards a host and port that [`Hosts`] does not list, nor, for a
//! listed name, towards an address that is not public unless that address itself is listed. What a
//! listed host does with what it is sent is not decided here.

mod forward;
mod hosts;
mod proxy;
mod request;

pub use forward::forward;
pub use hosts::{HostError, Hosts};
pub use proxy::Proxy;
