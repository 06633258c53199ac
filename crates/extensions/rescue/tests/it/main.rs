//! Damaged stores, seen from outside.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod doctor;
mod support;
