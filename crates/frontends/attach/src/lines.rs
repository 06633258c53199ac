//! The lines of the attach protocol. Each line is one JSON object. The session also sends its events
//! in the format of `--output-format stream-json`.

use haft_agent::{Approval, ApprovalReply};
use haft_types::{Field, Form, FormOutcome, PermissionMode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the protocol. It changes if a line changes its meaning; new lines and fields don't
/// change it.
pub const PROTOCOL_VERSION: u32 = 1;

/// A line from the session to a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AttachLine {
    /// The first line: describes the session.
    Attach(SessionInfo),
    /// The oldest events of the turn are left out, because they are too many.
    Skipped {
        /// The number of lines that are left out.
        lines: u64,
    },
    /// All earlier lines have been sent; the following ones are new.
    Live {},
    /// A turn has begun.
    TurnBegan {},
    /// A message of the user is in the store.
    User {
        text: String,
        /// The client that sent the message; absent if the session's own front end did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<u64>,
        /// The id that the client gave to its message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// True if the message began the turn, false if it joined the running one.
        begins_turn: bool,
    },
    /// The turn has ended.
    TurnEnded {},
    /// The session waits for a message.
    Idle {
        /// The number with which a message can answer: [`ClientLine::User::answers`].
        prompt: u64,
    },
    /// A call waits for an approval.
    ApprovalRequest {
        /// The id to be used in the answer.
        id: String,
        #[serde(flatten)]
        approval: Box<Approval>,
    },
    /// An approval was answered. All later answers are refused.
    ApprovalAnswered {
        id: String,
        /// The client whose answer won; absent for the session's own front end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<u64>,
        #[serde(flatten)]
        answer: ApprovalAnswer,
    },
    /// A server asks the user to fill in a form.
    FormRequest {
        /// The id to be used in the answer.
        id: String,
        /// The name of the server.
        from: String,
        message: String,
        fields: Vec<Field>,
    },
    /// A form was answered. All later answers are refused.
    FormAnswered {
        id: String,
        /// The client whose answer won; absent for the session's own front end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<u64>,
    },
    /// An approval or a form is no longer needed, because its turn was canceled.
    Withdrawn { id: String },
    /// The permission mode was changed.
    Mode {
        mode: PermissionMode,
        /// The client that changed the mode.
        client: u64,
    },
    /// A line of this client had no effect.
    Refused {
        /// The id of the message, approval or form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The reason, for people.
        message: String,
    },
    /// The last line: the connection is closed.
    Detached {
        /// The reason, for people.
        message: String,
    },
}

/// The description of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// The protocol's version, [`PROTOCOL_VERSION`].
    pub version: u32,
    /// The version of haft.
    pub haft: String,
    pub conversation_id: String,
    /// The name of the conversation.
    pub name: String,
    /// The model, as `provider/model`.
    pub model: String,
    pub mode: PermissionMode,
    /// The working directory.
    pub cwd: String,
    /// The namespace of the conversation, usually the project's path.
    pub namespace: String,
    /// The id of the session's process.
    pub process: u32,
    pub state: AttachState,
    /// The number of this client.
    pub client: u64,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachState {
    /// A turn is running.
    Running,
    /// A turn is running, and an approval or a form is open.
    Asking,
    /// No turn is running; a message begins one.
    Idle,
    /// No turn is running, and the session's own front end begins the next one.
    Closed,
}

impl AttachState {
    /// Returns the stable name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Asking => "asking",
            Self::Idle => "idle",
            Self::Closed => "closed",
        }
    }
}

/// A line from a client to the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientLine {
    /// The first line.
    Attach {
        /// The protocol's version, [`PROTOCOL_VERSION`].
        version: u32,
    },
    /// A message of the user. It joins the running turn, or begins one.
    User {
        text: String,
        /// An id of the client's choice, which the confirmation repeats. A second message with the
        /// id of an earlier one has no effect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The number of the [`AttachLine::Idle`] that the message answers. The message is refused
        /// if another one came first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answers: Option<u64>,
    },
    /// Ends the running turn.
    Interrupt {},
    /// Answers an approval.
    Approval {
        /// The id of the request.
        id: String,
        #[serde(flatten)]
        answer: ApprovalAnswer,
    },
    /// Answers a form.
    Form {
        /// The id of the request.
        id: String,
        #[serde(flatten)]
        answer: FormFilling,
    },
    /// Changes the permission mode.
    Mode { mode: PermissionMode },
}

/// The answer to an approval: an [`ApprovalReply`] as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum ApprovalAnswer {
    /// Allows this call only.
    Allow {},
    /// Allows the call from now on, by saving the rules in the request.
    Always {},
    /// Allows the call until the session ends, by the rules in the request.
    Session {},
    /// Allows this call only, with other arguments.
    Change { arguments: Value },
    /// Allows the call from now on, by saving these rules.
    Rules { rules: Vec<String> },
    /// Denies the call.
    Deny {
        /// The explanation for the model.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
}

impl From<ApprovalReply> for ApprovalAnswer {
    fn from(reply: ApprovalReply) -> Self {
        match reply {
            ApprovalReply::Once => Self::Allow {},
            ApprovalReply::Always => Self::Always {},
            ApprovalReply::Session => Self::Session {},
            ApprovalReply::Changed { arguments } => Self::Change { arguments },
            ApprovalReply::AlwaysBy { rules } => Self::Rules { rules },
            ApprovalReply::No { reason } => Self::Deny { message: reason },
        }
    }
}

impl From<ApprovalAnswer> for ApprovalReply {
    fn from(answer: ApprovalAnswer) -> Self {
        match answer {
            ApprovalAnswer::Allow {} => Self::Once,
            ApprovalAnswer::Always {} => Self::Always,
            ApprovalAnswer::Session {} => Self::Session,
            ApprovalAnswer::Change { arguments } => Self::Changed { arguments },
            ApprovalAnswer::Rules { rules } => Self::AlwaysBy { rules },
            ApprovalAnswer::Deny { message } => Self::No { reason: message },
        }
    }
}

/// The answer to a form: a [`FormOutcome`] as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum FormFilling {
    /// The form is filled in.
    Accept {
        /// The values, by the names of the fields.
        #[serde(default)]
        values: Map<String, Value>,
    },
    /// The form is not filled in; the server may continue without it.
    Decline {},
    /// The form is not filled in, and the call should end.
    Cancel {},
}

impl From<FormOutcome> for FormFilling {
    fn from(outcome: FormOutcome) -> Self {
        match outcome {
            FormOutcome::Accepted(values) => Self::Accept { values },
            FormOutcome::Declined => Self::Decline {},
            FormOutcome::Canceled => Self::Cancel {},
        }
    }
}

impl From<FormFilling> for FormOutcome {
    fn from(answer: FormFilling) -> Self {
        match answer {
            FormFilling::Accept { values } => Self::Accepted(values),
            FormFilling::Decline {} => Self::Declined,
            FormFilling::Cancel {} => Self::Canceled,
        }
    }
}

impl AttachLine {
    pub(crate) fn for_form(id: String, form: &Form) -> Self {
        Self::FormRequest {
            id,
            from: form.requester.clone(),
            message: form.message.clone(),
            fields: form.fields.clone(),
        }
    }
}

/// Serializes a line, with its line break.
pub(crate) fn to_line(value: &impl Serialize) -> String {
    // Plain data always serializes.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use haft_agent::SubjectKind;
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_keep_their_meaning_as_json() {
        let approval = Approval {
            agent: "main".into(),
            call_id: Some("c1".into()),
            tool: "execute_command".into(),
            arguments: json!({"command": "make"}),
            subject: "make".into(),
            subject_kind: SubjectKind::Text,
            reason: "no rule allows `make`".into(),
            leaves_sandbox: false,
            parts: Vec::new(),
            remember: vec!["execute_command(make)".into()],
        };
        let line = AttachLine::ApprovalRequest {
            id: "1".into(),
            approval: Box::new(approval),
        };
        let text = to_line(&line);
        assert_eq!(
            text,
            "{\"type\":\"approval_request\",\"id\":\"1\",\"agent\":\"main\",\"call_id\":\"c1\",\"tool\":\"execute_command\",\"arguments\":{\"command\":\"make\"},\"subject\":\"make\",\"subject_kind\":\"text\",\"reason\":\"no rule allows `make`\",\"leaves_sandbox\":false,\"parts\":[],\"remember\":[\"execute_command(make)\"]}\n"
        );
        assert_eq!(serde_json::from_str::<AttachLine>(&text).unwrap(), line);
        let replies = [
            ApprovalReply::Once,
            ApprovalReply::Always,
            ApprovalReply::Session,
            ApprovalReply::Changed {
                arguments: json!({"a": 1}),
            },
            ApprovalReply::AlwaysBy {
                rules: vec!["x".into()],
            },
            ApprovalReply::No {
                reason: "later".into(),
            },
        ];
        for reply in replies {
            let line = ClientLine::Approval {
                id: "1".into(),
                answer: reply.clone().into(),
            };
            let read: ClientLine = serde_json::from_str(&to_line(&line)).unwrap();
            assert_eq!(read, line);
            let ClientLine::Approval { answer, .. } = read else {
                panic!("{line:?}");
            };
            assert_eq!(ApprovalReply::from(answer), reply);
        }
    }

    #[test]
    fn client_lines_of_people_are_read() {
        let read = |line: &str| serde_json::from_str::<ClientLine>(line).map_err(|e| e.to_string());
        assert_eq!(
            read(r#"{"type":"user","text":"hi"}"#),
            Ok(ClientLine::User {
                text: "hi".into(),
                id: None,
                answers: None
            })
        );
        assert_eq!(
            read(r#"{"type":"approval","id":"1","decision":"deny"}"#),
            Ok(ClientLine::Approval {
                id: "1".into(),
                answer: ApprovalAnswer::Deny {
                    message: String::new()
                }
            })
        );
        for bad in [
            "",
            "{}",
            r#"{"type":"user"}"#,
            r#"{"type":"approval","id":"1","decision":"yes"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
