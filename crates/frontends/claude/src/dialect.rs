//! Converts between lines and their meaning, in haft's own format or in Claude Code's.

use haft_agent::{Approval, ApprovalReply};
use haft_types::{Form, FormOutcome, Image};
use serde_json::Value;

use crate::lines::{ApprovalDecision, ControlLine, FormDecision, InputLine};
use crate::{ClaudeCall, claude_lines};

/// A format of the lines on standard input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The format of haft's own `stream-json`.
    Haft,
    /// The format of Claude Code's SDKs.
    Claude,
}

/// A prompt of the user, with its images.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserPrompt {
    pub text: String,
    pub images: Vec<Image>,
    /// The position among the prompts of the input, from 1; 0 for the prompt of the command line.
    pub number: u64,
}

impl<T: Into<String>> From<T> for UserPrompt {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// A report about the session that a client can request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportKind {
    /// The parts of the next request, with their sizes.
    ContextUsage,
    /// The MCP servers of the command line and of the client.
    McpStatus,
}

/// An input line from the client, parsed from either format.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StreamInput {
    /// A prompt for the main agent.
    Prompt(UserPrompt),
    /// A prompt for a sub-agent.
    ToAgent {
        /// The name of the sub-agent.
        agent: String,
        text: String,
    },
    /// A request to end the running turn.
    Interrupt {
        /// The line that acknowledges the interrupt, if the client waits for one.
        acknowledgment: Option<Value>,
    },
    /// The client's answer to an approval request.
    Answer {
        /// The id of the approval request.
        id: String,
        answer: ApprovalReply,
        /// The changes of permissions that come with the answer, as the client sent them; null
        /// without changes.
        updates: Value,
        /// True if the running turn ends with this answer.
        ends_turn: bool,
    },
    /// The client's answer to a form.
    Filled {
        /// The id of the form.
        id: String,
        /// The values of the fields, or the decision not to fill in the form.
        filled: FormOutcome,
    },
    /// A request in which the client declares its hooks, MCP servers and agents.
    Initialize {
        /// The id of the request, which the response repeats.
        id: String,
        /// The complete `initialize` request.
        request: Value,
    },
    /// A request for a report about the session.
    Report {
        /// The id of the request, which the response repeats.
        id: String,
        kind: ReportKind,
    },
    /// A request to change the model, starting with the next turn.
    UseModel {
        /// The id of the request, which the response repeats.
        id: String,
        /// The name of the model. If absent, the model with which the run started is used.
        model: Option<String>,
    },
    /// A request to change the permission mode.
    UseMode {
        /// The id of the request, which the response repeats.
        id: String,
        /// The name of the mode.
        mode: String,
    },
    /// An input line whose only effect is that this reply is printed.
    Reply(Value),
    /// An input line that has no effect.
    Ignored,
}

impl Dialect {
    /// Parses a line of the input. The error is a message for the client.
    pub(crate) fn parse_line(self, line: &str) -> Result<StreamInput, String> {
        match self {
            Self::Haft => parse_haft_line(line),
            Self::Claude => claude_lines::parse_line(line),
        }
    }

    /// Returns the request id and the content of a line that responds to one of haft's requests, or
    /// `None` for any other line. In haft's own format, no line is a response.
    pub(crate) fn parse_response(self, line: &str) -> Option<(String, Result<Value, String>)> {
        match self {
            Self::Haft => None,
            Self::Claude => claude_lines::parse_response(line),
        }
    }

    /// Returns the line that asks the client to approve a tool call.
    pub(crate) fn approval_line(self, id: &str, approval: &Approval, call: &ClaudeCall) -> Value {
        match self {
            Self::Haft => to_value(&ControlLine::ApprovalRequest {
                id: id.to_owned(),
                agent: approval.agent.clone(),
                tool: approval.tool.clone(),
                arguments: approval.arguments.clone(),
                subject: approval.shown_subject(),
                reason: approval.shown_reason(),
                remember: approval.shown_rules(),
            }),
            Self::Claude => claude_lines::approval_line(id, approval, call),
        }
    }

    /// Returns the line that asks the client to fill in a form, or `None` if the format has no such
    /// line.
    pub(crate) fn form_line(self, id: &str, form: &Form) -> Option<Value> {
        match self {
            Self::Haft => Some(to_value(&ControlLine::FormRequest {
                id: id.to_owned(),
                from: form.requester.clone(),
                message: form.message.clone(),
                fields: form.fields.clone(),
            })),
            Self::Claude => None,
        }
    }

    /// Returns the line that withdraws a request, or `None` if the format has no such line.
    pub(crate) fn withdrawal_line(self, id: &str) -> Option<Value> {
        match self {
            Self::Haft => None,
            Self::Claude => Some(claude_lines::withdrawal_line(id)),
        }
    }

    /// Returns the line that reports that a message joined the running turn, or `None` if the
    /// format has no such line.
    pub fn input_joined_line(self, text: &str) -> Option<Value> {
        match self {
            Self::Haft => Some(to_value(&ControlLine::InputJoined {
                text: text.to_owned(),
            })),
            Self::Claude => None,
        }
    }

    /// Returns the line that reports an invalid input line.
    pub(crate) fn input_error_line(self, message: String) -> Value {
        match self {
            Self::Haft => to_value(&ControlLine::InputError { message }),
            Self::Claude => claude_lines::input_error_line(&message),
        }
    }
}

fn to_value(line: &ControlLine) -> Value {
    serde_json::to_value(line).unwrap_or_default()
}

fn parse_haft_line(line: &str) -> Result<StreamInput, String> {
    Ok(
        match serde_json::from_str(line).map_err(|error| error.to_string())? {
            InputLine::User { text, agent: None } => StreamInput::Prompt(text.into()),
            InputLine::User {
                text,
                agent: Some(agent),
            } => StreamInput::ToAgent { agent, text },
            InputLine::Interrupt {} => StreamInput::Interrupt {
                acknowledgment: None,
            },
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
                StreamInput::Answer {
                    id,
                    answer,
                    updates: Value::Null,
                    ends_turn: false,
                }
            }
            InputLine::Form {
                id,
                decision,
                values,
            } => {
                let filled = match decision {
                    FormDecision::Accept => FormOutcome::Accepted(values),
                    FormDecision::Decline => FormOutcome::Declined,
                    FormDecision::Cancel => FormOutcome::Canceled,
                };
                StreamInput::Filled { id, filled }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use haft_agent::{MAIN_AGENT, SubjectKind};
    use haft_testkit::support::hostile_commands;
    use serde_json::json;

    use super::*;
    use crate::ToolNaming;

    #[test]
    fn approval_lines_show_hostile_commands_exactly() {
        for command in hostile_commands(44, 1_000) {
            let approval = Approval {
                agent: MAIN_AGENT.into(),
                call_id: None,
                tool: "execute_command".into(),
                arguments: json!({ "command": command }),
                subject: command.clone(),
                subject_kind: SubjectKind::Text,
                reason: command.clone(),
                leaves_sandbox: false,
                parts: Vec::new(),
                remember: vec![command.clone()],
            };
            let shown = approval.shown_subject();
            let call = ToolNaming::Claude.translate_call(
                &approval.tool,
                &approval.arguments,
                Path::new("/p"),
            );
            let line = Dialect::Haft.approval_line("1", &approval, &call);
            assert_eq!(line["subject"], shown);
            assert_eq!(line["reason"], shown);
            assert_eq!(line["remember"][0], shown);
            assert_eq!(line["arguments"]["command"], command);
            let line = Dialect::Claude.approval_line("1", &approval, &call);
            assert_eq!(line["request"]["description"], shown);
            assert_eq!(line["request"]["decision_reason"], shown);
            assert_eq!(
                line["request"]["input"]["command"], command,
                "it is what runs"
            );
        }
    }

    #[test]
    fn parse_line_reads_haft_lines() {
        let read = |line: &str| Dialect::Haft.parse_line(line);
        assert_eq!(
            read(r#"{"type":"user","text":"hi"}"#),
            Ok(StreamInput::Prompt("hi".into()))
        );
        assert_eq!(
            read(r#"{"type":"interrupt"}"#),
            Ok(StreamInput::Interrupt {
                acknowledgment: None
            })
        );
        let no = ApprovalReply::No {
            reason: "use tabs".into(),
        };
        assert_eq!(
            read(r#"{"type":"approval","id":"1","decision":"deny","message":"use tabs"}"#),
            Ok(StreamInput::Answer {
                id: "1".into(),
                answer: no,
                updates: Value::Null,
                ends_turn: false,
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
