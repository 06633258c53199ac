//! The store seen from outside.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod any_message;
mod backups;
mod cache;
mod contract;
mod crash;
mod file;
mod index;
mod kept_whole;
mod locks;
mod recorded;
mod request_log;
mod support;
