//! The `[limits]` section: the limits on output, on concurrent commands, and on the time of
//! sub-agents.

use haft_tool::OutputLimits;
use serde::{Deserialize, Serialize};

/// The limits on output, on concurrent commands, and on the time of sub-agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Lines of one output the model is shown.
    pub output_lines: usize,
    /// Bytes of one output the model is shown.
    pub output_bytes: usize,
    /// Bytes of one output that are kept in a file.
    pub spill_bytes: u64,
    /// Days that a file with complete output is kept; 0 keeps it forever.
    pub spill_days: u32,
    /// Sessions at a terminal that may be open at once.
    pub sessions: usize,
    /// Background tasks that may run at once.
    pub background_tasks: usize,
    /// Seconds a sub-agent may take.
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
    /// Returns the limits of one output for the model.
    pub fn output_limits(&self) -> OutputLimits {
        OutputLimits {
            lines: self.output_lines,
            bytes: self.output_bytes,
        }
    }
}
