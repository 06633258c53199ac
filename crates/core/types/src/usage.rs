//! Token counts by class. The classes of input are disjoint: a token is fresh input, read from the
//! cache, or written to the cache.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of tokens in each class, of one request or of several requests together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// The number of input tokens neither read from nor written to the cache.
    pub input: u64,
    /// The number of input tokens read from the cache.
    pub cached_input: u64,
    /// The number of input tokens written to the cache.
    pub cache_write: u64,
    /// The number of output tokens, including reasoning.
    pub output: u64,
    /// The number of output tokens that were used for reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// Returns the number of all input tokens, cached or not.
    pub fn all_input(&self) -> u64 {
        self.input + self.cached_input + self.cache_write
    }

    /// Returns the number of tokens that occupy the window after the reply.
    pub fn total(&self) -> u64 {
        self.all_input() + self.output
    }

    /// Returns the share of the input tokens that were read from the cache, from 0 to 1.
    pub fn cached_share(&self) -> f64 {
        match self.all_input() {
            0 => 0.0,
            all => self.cached_input as f64 / all as f64,
        }
    }
}

/// The share of one tool's results in the input tokens of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolShare {
    /// The name of the tool.
    pub name: String,
    /// The number of tokens neither read from nor written to the cache.
    pub input: u64,
    /// The number of tokens read from the cache.
    pub cached_input: u64,
    /// The number of tokens written to the cache.
    pub cache_write: u64,
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
