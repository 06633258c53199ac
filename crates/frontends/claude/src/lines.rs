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
    /// A prompt of the user, which starts a turn. While a turn is running, the prompt joins it before
    /// the next request (`input_joined`); if no request follows, the prompt starts the next turn.
    User {
        /// The prompt's text.
        text: String,
        /// The sub-agent that receives the prompt, by the name in its events. The sub-agent reads the
        /// prompt before its next request, and no turn starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// Ends the running turn as `aborted`. The next prompt continues the conversation.
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
        /// The decision about the form.
        decision: FormDecision,
        /// With `accept`: the values, by the names of the fields.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        values: Map<String, Value>,
    },
}

/// The possible answers to a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FormDecision {
    /// The form is filled in.
    Accept,
    /// The form is not filled in; the server may continue without it.
    Decline,
    /// The form is not filled in, and the call should end.
    Cancel,
}

/// The possible answers to an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// Allows this call.
    Allow,
    /// Allows this call, and writes the rules in `remember` to the configuration.
    Always,
    /// Refuses the call.
    Deny,
}

/// A line that a run prints in addition to its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ControlLine {
    /// A call waits for an approval (`--ask`). The turn pauses until the request is answered or the
    /// turn is interrupted.
    ApprovalRequest {
        /// The id to be used in the answer.
        id: String,
        /// The agent that made the call: `main`, or the name of a sub-agent.
        agent: String,
        /// The name of the tool.
        tool: String,
        /// The arguments of the call, as the model wrote them.
        arguments: Value,
        /// The exact command that would run, or the exact content that would be written. Characters
        /// without a visible form are written as symbols such as `␛` or `<U+202E>`.
        subject: String,
        /// The reason why the call needs an approval.
        reason: String,
        /// The rules that `always` would write. If the list is empty, `always` allows only this call.
        remember: Vec<String>,
    },
    /// An MCP server asks the user to fill in a form during a call (`--ask`). All texts of the form
    /// come from the server.
    FormRequest {
        /// The id to be used in the answer.
        id: String,
        /// The name of the server.
        from: String,
        /// The server's message, which states the purpose.
        message: String,
        /// The fields of the form, in order.
        fields: Vec<Field>,
    },
    /// A prompt has joined the running turn: it is stored, the next request contains it, and it
    /// starts no turn of its own.
    InputJoined {
        /// The text of the prompt.
        text: String,
    },
    /// A line of the input could not be read and was ignored.
    InputError {
        /// The problem with the line.
        message: String,
    },
}
