//! The server as a client sees it, over a bare socket.

mod ask;
mod faults;
mod protocol;
mod server;
