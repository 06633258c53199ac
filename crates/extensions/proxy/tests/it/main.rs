//! Traffic through real sockets: a client, the proxy, and an upstream that keeps what reached it.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod peers;
mod recorded;
mod traffic;
