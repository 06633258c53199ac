//! The store seen from outside.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod any_message;
mod contract;
mod crash;
mod file;
mod kept_whole;
mod request_log;
mod support;
