//! Tests the store's public interface.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test, a panic is the report, and a skip is told"
)]

mod any_message;
mod backups;
mod cache;
mod conformance;
mod crash;
mod file;
mod hardship;
mod index;
mod kept_whole;
mod locks;
mod request_log;
mod support;
