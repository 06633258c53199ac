//! The ways in which replies and turns end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The reason why the model stopped writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished its turn.
    EndTurn,
    /// The model waits for tool results.
    ToolUse,
    /// The reply reached the output limit.
    Length,
    /// The provider declined to answer.
    Refusal,
    /// Any other reason, in the provider's words.
    Other(String),
}

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The task is done.
    Completed,
    /// The user is needed: a question was asked, or an action was denied.
    Waiting,
    /// The turn was canceled.
    Aborted,
    /// A limit was reached: turns, tokens, money or time.
    Exhausted,
    /// The turn was ended by an error.
    Failed,
}

impl Outcome {
    /// Returns the name of the outcome, as used in events.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
