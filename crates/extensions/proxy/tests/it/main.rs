//! Sends traffic through real sockets: a client, the proxy, and an upstream that records requests.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod peers;
mod recorded;
mod traffic;
