//! Tests of damaged stores through the public interface.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod doctor;
mod support;
