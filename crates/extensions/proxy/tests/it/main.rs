//! Traffic through real sockets: a client, the proxy, and an upstream that keeps what reached it.

mod peers;
mod recorded;
mod traffic;
