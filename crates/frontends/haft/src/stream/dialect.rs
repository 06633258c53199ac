//! What lines mean: in haft's own shape, or in that of another program.

use haft_engine::{Approval, ApprovalReply};
use haft_types::{Filled, Form, Image};
use serde_json::Value;

use super::claude;
use super::lines::{ApprovalDecision, ControlLine, FormDecision, InputLine};
use crate::commands::claude::ClaudeCall;

/// In whose shape lines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// haft's own.
    Haft,
    /// Claude Code's.
    Claude,
}

/// What a user says, with the images that go with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UserPrompt {
    /// The text.
    pub(crate) text: String,
    /// The images.
    pub(crate) images: Vec<Image>,
}

impl<T: Into<String>> From<T> for UserPrompt {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            images: Vec::new(),
        }
    }
}

/// What a line of the input is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StreamInput {
    /// A prompt of the user.
    Prompt(UserPrompt),
    /// A prompt of the user to a sub-agent.
    ToAgent {
        /// Its name.
        agent: String,
        /// The words to search for.
        text: String,
    },
    /// The running turn is to end.
    Interrupt {
        /// The id to acknowledge, where the sender waits for that.
        heard: Option<Value>,
    },
    /// Somebody answers what was asked.
    Answer {
        /// The id of the question.
        id: String,
        /// The answer.
        answer: ApprovalReply,
    },
    /// Somebody has filled in a form, or not.
    Filled {
        /// The id of the form.
        id: String,
        /// What came of it.
        filled: Filled,
    },
    /// Somebody says who they are and what they bring: hooks, servers, agents.
    Initialize {
        /// The id to answer.
        id: String,
        /// What they say.
        request: Value,
    },
    /// Another model is to be asked from the next turn on.
    UseModel {
        /// The id to answer.
        id: String,
        /// The model; the first one when absent.
        model: Option<String>,
    },
    /// Another permission mode is to hold.
    UseMode {
        /// The id to answer.
        id: String,
        /// Its name.
        mode: String,
    },
    /// Nothing is to be done but to say this.
    Reply(Value),
    /// Nothing is to be done.
    Nothing,
}

impl Dialect {
    /// Reads a line; the error is for its writer.
    pub(super) fn read(self, line: &str) -> Result<StreamInput, String> {
        match self {
            Self::Haft => read(line),
            Self::Claude => claude::read(line),
        }
    }

    /// The id and the content of a line that answers a request of ours; none where that has a line
    /// of its own.
    pub(super) fn response(self, line: &str) -> Option<(String, Result<Value, String>)> {
        match self {
            Self::Haft => None,
            Self::Claude => claude::response(line),
        }
    }

    /// The line that asks.
    pub(super) fn ask(self, id: &str, approval: &Approval, call: &ClaudeCall) -> Value {
        match self {
            Self::Haft => to_value(&ControlLine::ApprovalRequest {
                id: id.to_owned(),
                agent: approval.agent.clone(),
                tool: approval.tool.clone(),
                arguments: approval.arguments.clone(),
                subject: approval.subject.clone(),
                reason: approval.reason.clone(),
                remember: approval.remember.clone(),
            }),
            Self::Claude => claude::ask(id, approval, call),
        }
    }

    /// The line that asks to fill in a form; none in a shape that has no forms.
    pub(super) fn form(self, id: &str, form: &Form) -> Option<Value> {
        match self {
            Self::Haft => Some(to_value(&ControlLine::FormRequest {
                id: id.to_owned(),
                from: form.from.clone(),
                message: form.message.clone(),
                fields: form.fields.clone(),
            })),
            Self::Claude => None,
        }
    }

    /// The line that takes a question back, where there is one.
    pub(super) fn take_back(self, id: &str) -> Option<Value> {
        match self {
            Self::Haft => None,
            Self::Claude => Some(claude::take_back(id)),
        }
    }

    /// The line that says that a message joined the turn; none in a shape that has no such line.
    pub(crate) fn joined(self, text: &str) -> Option<Value> {
        match self {
            Self::Haft => Some(to_value(&ControlLine::InputJoined {
                text: text.to_owned(),
            })),
            Self::Claude => None,
        }
    }

    /// The line that reports a line that could not be read.
    pub(super) fn unreadable(self, message: String) -> Value {
        match self {
            Self::Haft => to_value(&ControlLine::InputError { message }),
            Self::Claude => claude::unreadable(&message),
        }
    }
}

fn to_value(line: &ControlLine) -> Value {
    serde_json::to_value(line).unwrap_or_default()
}

fn read(line: &str) -> Result<StreamInput, String> {
    Ok(
        match serde_json::from_str(line).map_err(|error| error.to_string())? {
            InputLine::User { text, agent: None } => StreamInput::Prompt(text.into()),
            InputLine::User {
                text,
                agent: Some(agent),
            } => StreamInput::ToAgent { agent, text },
            InputLine::Interrupt {} => StreamInput::Interrupt { heard: None },
            InputLine::Approval {
                id,
                decision,
                message,
            } => {
                let answer = match decision {
                    ApprovalDecision::Allow => ApprovalReply::Once,
                    ApprovalDecision::Always => ApprovalReply::Always,
                    ApprovalDecision::Deny => ApprovalReply::No { reason: message },
                };
                StreamInput::Answer { id, answer }
            }
            InputLine::Form {
                id,
                decision,
                values,
            } => {
                let filled = match decision {
                    FormDecision::Accept => Filled::Accepted(values),
                    FormDecision::Decline => Filled::Declined,
                    FormDecision::Cancel => Filled::Cancelled,
                };
                StreamInput::Filled { id, filled }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_our_own_shape() {
        let read = |line: &str| Dialect::Haft.read(line);
        assert_eq!(
            read(r#"{"type":"user","text":"hi"}"#),
            Ok(StreamInput::Prompt("hi".into()))
        );
        assert_eq!(
            read(r#"{"type":"interrupt"}"#),
            Ok(StreamInput::Interrupt { heard: None })
        );
        let no = ApprovalReply::No {
            reason: "use tabs".into(),
        };
        assert_eq!(
            read(r#"{"type":"approval","id":"1","decision":"deny","message":"use tabs"}"#),
            Ok(StreamInput::Answer {
                id: "1".into(),
                answer: no
            })
        );
        for bad in [
            "",
            "hi",
            r#"{"type":"user"}"#,
            r#"{"type":"usr","text":"x"}"#,
            r#"{"type":"user","text":"x","y":1}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
