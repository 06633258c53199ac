//! The `[limits]` section: the limits on output, on concurrent commands, and on the time of
//! sub-agents.

use haft_tool::OutputLimits;
use serde::{Deserialize, Serialize};

/// The limits on output, on concurrent commands, and on the time of sub-agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// The maximum number of lines of one output that are sent to the model.
    pub output_lines: usize,
    /// The maximum number of bytes of one output that are sent to the model.
    pub output_bytes: usize,
    /// The maximum number of bytes of one output that are saved in a file.
    pub spill_bytes: u64,
    /// The number of days after which a file with complete output is removed; 0 keeps it forever.
    pub spill_days: u32,
    /// The maximum number of terminal sessions that are open at once.
    pub sessions: usize,
    /// The maximum number of background tasks that run at once.
    pub background_tasks: usize,
    /// The time limit of a sub-agent, in seconds.
    pub agent_seconds: u64,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let OutputLimits { lines, bytes } = OutputLimits::default();
        Self {
            output_lines: lines,
            output_bytes: bytes,
            spill_bytes: 2 << 30,
            spill_days: 30,
            sessions: 8,
            background_tasks: 16,
            agent_seconds: 1_800,
        }
    }
}

impl LimitsConfig {
    /// Returns the limits of one output that is sent to the model.
    pub fn output_limits(&self) -> OutputLimits {
        OutputLimits {
            lines: self.output_lines,
            bytes: self.output_bytes,
        }
    }
}
