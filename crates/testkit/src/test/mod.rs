//! What tests need besides a model: time and ids that do not vary, a home of their own, readable comparisons.

mod assert;
mod clock;
mod home;
mod ids;

pub use assert::{assert_all_replied, assert_same, assert_same_on_all};
pub use clock::FakeClock;
pub use home::{HomeError, TempHome};
pub use ids::SequentialIds;
