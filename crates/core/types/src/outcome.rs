//! How replies and turns end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Why the model stopped writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It waits for tool results.
    ToolUse,
    /// The output limit was reached.
    Length,
    /// The provider declined to answer.
    Refusal,
    /// Anything else, as the provider names it.
    Other(String),
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The task is done.
    Completed,
    /// A person is needed: a question, or an action was denied.
    Waiting,
    /// Cancelled.
    Aborted,
    /// A limit was reached: turns, tokens, money or time.
    Exhausted,
    /// It could not go on.
    Failed,
}

impl Outcome {
    /// Its name in events.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
