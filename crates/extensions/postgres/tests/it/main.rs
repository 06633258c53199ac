//! Tests the public interface of the store on a PostgreSQL server. Without a server, which
//! `HAFT_POSTGRES` names, each test prints that it was skipped; `tests/postgres/start.sh` starts
//! one.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test, a panic is the report, and a skip is told"
)]

mod conformance;
mod hostile;
mod large;
mod postgres;
mod queue;
mod queue_faults;
mod server;
