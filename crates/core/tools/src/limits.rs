//! The `[limits]` section: the limits on output, on concurrent commands, on the time of sub-agents,
//! and on the repetitions of a turn.

use std::time::Duration;

use haft_tool::{BreakerLimits, OutputLimits};
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};

/// The limits on output, on concurrent commands, on the time of sub-agents, and on the repetitions
/// of a turn.
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
    /// The maximum number of ranges of useful information per conversation. If there are more, the
    /// oldest are dropped.
    #[serde(deserialize_with = "deserialize_from_one")]
    pub useful_ranges: u32,
    /// The maximum number of notes on one folder or file that are shown without a query.
    pub shown_notes: u32,
    /// Like [`BreakerLimits::failures`].
    #[serde(deserialize_with = "deserialize_from_one")]
    pub tool_failures: u32,
    /// Like [`BreakerLimits::pause`], in seconds.
    pub tool_pause_seconds: u32,
    /// The maximum number of calls of one reply that are run. Each call needs a result in the next
    /// request, and well-behaved models make fewer calls.
    #[serde(deserialize_with = "deserialize_from_one")]
    pub calls_per_reply: u32,
    /// The maximum number of calls of one reply that run at once. Only reading calls run at once.
    #[serde(deserialize_with = "deserialize_from_one")]
    pub parallel_calls: u32,
    /// The maximum number of requests that continue one reply.
    pub continuations: u32,
    /// Like [`LoopLimits::nudges`].
    pub nudges: u32,
    /// Like [`LoopLimits::corrections`].
    pub corrections: u32,
    /// Like [`LoopLimits::equal_results`].
    #[serde(deserialize_with = "deserialize_equal_results")]
    pub equal_results: u32,
    /// Like [`LoopLimits::cycle_calls`].
    #[serde(deserialize_with = "deserialize_cycle_calls")]
    pub cycle_calls: u32,
}

/// The limits after which a turn ends because the model makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopLimits {
    /// The number of consecutive nudges after which the turn ends.
    pub nudges: u32,
    /// The number of warnings about repeated calls, or of objections to the end of the turn, after
    /// which the turn ends.
    pub corrections: u32,
    /// The number of consecutive equal results of a call after which the model is warned.
    pub equal_results: u32,
    /// The maximum length of a repeated sequence of calls that is detected as a cycle.
    pub cycle_calls: u32,
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self {
            nudges: 3,
            corrections: 3,
            equal_results: 3,
            cycle_calls: 4,
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let OutputLimits { lines, bytes } = OutputLimits::default();
        let LoopLimits {
            nudges,
            corrections,
            equal_results,
            cycle_calls,
        } = LoopLimits::default();
        let BreakerLimits { failures, pause } = BreakerLimits::default();
        Self {
            output_lines: lines,
            output_bytes: bytes,
            spill_bytes: 2 << 30,
            spill_days: 30,
            sessions: 8,
            background_tasks: 16,
            agent_seconds: 1_800,
            useful_ranges: 100,
            shown_notes: 5,
            tool_failures: failures,
            tool_pause_seconds: pause.as_secs() as u32,
            calls_per_reply: 128,
            parallel_calls: 128,
            continuations: 5,
            nudges,
            corrections,
            equal_results,
            cycle_calls,
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

    /// Returns the limits after which a broken tool is blocked.
    pub fn breaker_limits(&self) -> BreakerLimits {
        BreakerLimits {
            failures: self.tool_failures,
            pause: Duration::from_secs(u64::from(self.tool_pause_seconds)),
        }
    }

    /// Returns the limits after which a turn without progress ends.
    pub fn loop_limits(&self) -> LoopLimits {
        LoopLimits {
            nudges: self.nudges,
            corrections: self.corrections,
            equal_results: self.equal_results,
            cycle_calls: self.cycle_calls,
        }
    }
}

fn deserialize_from_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserialize_from_to(deserializer, 1, u32::MAX)
}

/// Deserializes a number of equal results. A call that is made once is no repetition.
fn deserialize_equal_results<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserialize_from_to(deserializer, 2, 100)
}

/// Deserializes the length of a cycle. After each reply, every length up to this one is compared.
fn deserialize_cycle_calls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserialize_from_to(deserializer, 1, 32)
}

/// Deserializes a number that must be at least `least` and at most `most`.
fn deserialize_from_to<'de, D: Deserializer<'de>>(
    deserializer: D,
    least: u32,
    most: u32,
) -> Result<u32, D::Error> {
    let value = u32::deserialize(deserializer)?;
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let expected = if most == u32::MAX {
        format!("a number from {least}")
    } else {
        format!("a number from {least} to {most}")
    };
    let found = Unexpected::Unsigned(u64::from(value));
    Err(D::Error::invalid_value(found, &expected.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_checked_when_they_are_read() {
        for (key, least, most) in [
            ("useful_ranges", 1, u32::MAX),
            ("shown_notes", 0, u32::MAX),
            ("tool_failures", 1, u32::MAX),
            ("tool_pause_seconds", 0, u32::MAX),
            ("calls_per_reply", 1, u32::MAX),
            ("parallel_calls", 1, u32::MAX),
            ("continuations", 0, u32::MAX),
            ("nudges", 0, u32::MAX),
            ("corrections", 0, u32::MAX),
            ("equal_results", 2, 100),
            ("cycle_calls", 1, 32),
        ] {
            for value in [least, most] {
                let read = serde_json::from_value::<LimitsConfig>(json!({ key: value })).unwrap();
                let written = serde_json::to_value(read).unwrap();
                assert_eq!(written[key], value, "{key}");
            }
            for value in [i64::from(least) - 1, i64::from(most) + 1] {
                let read = serde_json::from_value::<LimitsConfig>(json!({ key: value }));
                assert!(read.is_err(), "{key} = {value}");
            }
        }
    }

    #[test]
    fn limit_out_of_range_names_the_range() {
        let error = |limits| {
            serde_json::from_value::<LimitsConfig>(limits)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error(json!({"parallel_calls": 0})),
            "invalid value: integer `0`, expected a number from 1"
        );
        assert_eq!(
            error(json!({"equal_results": 1})),
            "invalid value: integer `1`, expected a number from 2 to 100"
        );
    }
}
