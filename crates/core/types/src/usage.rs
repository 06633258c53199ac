//! Token counts by class. The classes of input are disjoint: a token is fresh input, read from the
//! cache, or written to the cache.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens of one request, or of many added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Input neither read from nor written to the cache.
    pub input: u64,
    /// Input read from the cache.
    pub cached_input: u64,
    /// Input written to the cache.
    pub cache_write: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// The part of the output that was reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// Returns all input tokens, cached or not.
    pub fn all_input(&self) -> u64 {
        self.input + self.cached_input + self.cache_write
    }

    /// Returns the tokens that occupy the window after the reply.
    pub fn total(&self) -> u64 {
        self.all_input() + self.output
    }

    /// Returns the share of the input that came from the cache, 0 to 1.
    pub fn cached_share(&self) -> f64 {
        match self.all_input() {
            0 => 0.0,
            all => self.cached_input as f64 / all as f64,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cached_input += other.cached_input;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.reasoning += other.reasoning;
    }
}
