//! Tests collections with real folders, processes and sockets.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests may fail, and say what they skip"
)]

mod index;
mod questions;
mod remote;
