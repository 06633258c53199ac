//! Integration tests of the engine's public interface.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

#[path = "../../examples/gate_campaign/desk.rs"]
mod desk;

mod cache_lifetimes;
mod cold;
mod keep_alive;
mod kept_once;
mod unreadable_state;
