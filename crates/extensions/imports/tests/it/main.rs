//! Tests imports into a store and exports from it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test, a panic is the report, and a skip is told"
)]

mod recorded;
