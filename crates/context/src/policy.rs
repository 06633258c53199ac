//! The `[context]` section of the configuration.

use serde::{Deserialize, Serialize};

/// How requests are built. Every number of the design is a key here; the defaults are the design's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Share of the window from which a request is warned about.
    pub warn_at: f64,
    /// Tokens from which the system layer is warned about.
    pub system_warn: u32,
    /// Share of the window kept free for the reply when the model's maximum output is unknown.
    pub output_reserve: f64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { warn_at: 0.8, system_warn: 30_000, output_reserve: 0.3 }
    }
}
