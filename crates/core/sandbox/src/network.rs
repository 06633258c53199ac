//! The network of a confined command, filtered by host.
//!
//! ```text
//! command ── TCP, loopback of its own namespace ── forwarder ── Unix socket ── Proxy ── the listed hosts
//! ```
//!
//! The command's network namespace has only a loopback interface. There [`forward_connections`]
//! copies every connection to a Unix socket without parsing it. The [`Proxy`], in haft, serves that
//! socket: it accepts `CONNECT` and plain HTTP, asks [`Hosts`] if the host is allowed, resolves its
//! name itself, and connects to an address it has checked.
//!
//! Invariant: no byte is sent to a host and port that [`Hosts`] does not list. For a listed name,
//! no byte is sent to an address that is not public unless that address itself is listed. A listed
//! host may do anything with the data it receives.

mod forward;
#[cfg(any(test, fuzzing))]
mod fuzz_check;
mod hosts;
mod proxy;
mod refused_hosts;
mod request;

pub use forward::forward_connections;
#[cfg(any(test, fuzzing))]
pub use fuzz_check::check_proxy_request;
pub use hosts::{HostError, Hosts};
pub use proxy::Proxy;
pub use refused_hosts::RefusedHosts;
