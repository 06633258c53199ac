//! The lines of `--input-format stream-json`: commands from the program that drives a run, and the
//! run's requests to it. Each line is one JSON object. These lines are not events and have no
//! sequence number.

use haft_types::Field;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A line of standard input (`--input-format stream-json`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum InputLine {
    /// A message of the user: a turn begins with it. While one runs, it joins that before its next
    /// request (`input_joined`); where none follows, it begins a turn once that one is over.
    User {
        /// What the user typed.
        text: String,
        /// The sub-agent they are for, by the name its events have. It reads them before its next
        /// request; no turn begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// Ends the running turn as `aborted`. The next prompt goes on from there.
    Interrupt {},
    /// Answers an `approval_request`.
    Approval {
        /// The id of the request.
        id: String,
        /// The answer.
        decision: ApprovalDecision,
        /// With `deny`: a message for the model.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// Answers a `form_request`.
    Form {
        /// The id of the request.
        id: String,
        /// What becomes of it.
        decision: FormDecision,
        /// With `accept`: the answers, by the names of the fields.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        values: Map<String, Value>,
    },
}

/// What may become of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FormDecision {
    /// It is filled in.
    Accept,
    /// It is not, and the server may go on without.
    Decline,
    /// It is not, and the call should end.
    Cancel,
}

/// What may be answered to an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// This once.
    Allow,
    /// From now on: the rules in `remember` are written to the configuration.
    Always,
    /// No.
    Deny,
}

/// A line a run writes beside its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ControlLine {
    /// A call waits for a yes or no (`--ask`). The turn stands still until it is answered or
    /// interrupted.
    ApprovalRequest {
        /// By which the answer names it.
        id: String,
        /// The agent that calls: `main`, or a sub-agent's name.
        agent: String,
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: Value,
        /// Exactly what would run or be written.
        subject: String,
        /// Why it is asked.
        reason: String,
        /// The rules that `always` would write; without any, `always` means this once.
        remember: Vec<String>,
    },
    /// An MCP server wants something filled in, in the middle of a call (`--ask`). All text in it
    /// is the server's.
    FormRequest {
        /// By which the answer names it.
        id: String,
        /// Who asks.
        from: String,
        /// What for.
        message: String,
        /// What is wanted, in order.
        fields: Vec<Field>,
    },
    /// A message of the user has become part of the turn that runs: it is stored, the next request
    /// holds it, and no turn of its own follows.
    InputJoined {
        /// The message.
        text: String,
    },
    /// A line of the input could not be read; it was left out.
    InputError {
        /// What is wrong with it.
        message: String,
    },
}
