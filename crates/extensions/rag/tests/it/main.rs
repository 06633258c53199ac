//! Tests collections with real folders, processes and sockets.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests may fail, and say what they skip"
)]

mod index;
mod questions;
mod remote;
