//! Errors in building the system layer and requests.

use haft_types::{MessageId, Role};

use crate::policy::PolicyError;
use crate::reduce::safe_zone::SafeZoneError;

/// An error in building the system layer or a request.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// A built-in template failed to render; this is a bug in haft.
    #[error("section `{section}` of the system layer does not render; this is a bug in haft")]
    Template {
        /// The name of the section's template.
        section: &'static str,
        /// The error of the template engine.
        #[source]
        source: minijinja::Error,
    },
    /// The conversation has no message to answer.
    #[error("the conversation holds no message to answer; send an input first")]
    NoInput,
    /// The request breaks a rule that every request must follow.
    #[error("the request cannot be sent")]
    Integrity(#[from] IntegrityError),
    /// A context setting has a value that makes it impossible to build a request.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The configured safe zone is invalid or does not fit the model.
    #[error("`context.safe_zone` does not fit the model")]
    SafeZone(#[from] SafeZoneError),
    /// The request is larger than the room that the model leaves for input.
    #[error(
        "the request needs {tokens} tokens and the model has room for {room}; \
         use a model with a larger window or start a new conversation\n{table}"
    )]
    TooLarge {
        /// The number of tokens in the request.
        tokens: u64,
        /// The maximum number of input tokens: the window without the output reserve.
        room: u64,
        /// The number of tokens in each layer, as a table.
        table: String,
    },
}

/// The rule that a request breaks.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntegrityError {
    /// The request has no messages.
    #[error("the request holds no message")]
    Empty,
    /// The first message is not the system message.
    #[error("message {id} comes first but is a {role} message; the system message must")]
    FirstNotSystem { id: MessageId, role: Role },
    /// There is a second system message.
    #[error("message {id} is a second system message; there must be exactly one")]
    SecondSystem { id: MessageId },
    /// The last message is neither a user message nor a tool result, so the model has nothing to
    /// answer.
    #[error(
        "message {id} comes last but is a {role} message; a user message or a tool result must"
    )]
    LastNotAnswerable { id: MessageId, role: Role },
    /// A tool call of an assistant message has no result in the messages directly after it.
    #[error("message {id} calls tools, but call `{call}` is not answered directly after it")]
    BrokenBlock {
        /// The assistant message with the call.
        id: MessageId,
        /// The call that has no result.
        call: String,
    },
    /// A tool result is not preceded by the call that it answers.
    #[error(
        "message {id} holds a result of call `{call}`, which no message directly before it made"
    )]
    OrphanResult {
        /// The tool message with the result.
        id: MessageId,
        /// The call to which the result belongs.
        call: String,
    },
    /// A tool call or tool result is in a message of the wrong role.
    #[error("message {id} is a {role} message but holds a tool call or result")]
    MisplacedPart { id: MessageId, role: Role },
    /// The execute view does not consist of its four messages.
    #[error(
        "the execute view must be four messages of system, dialogue, window and state, not {roles:?}"
    )]
    ViewShape {
        /// The roles of the messages in the request.
        roles: Vec<Role>,
    },
    /// The system layer lacks a required section.
    #[error("system message {id} lacks the section `{section}`")]
    MissingSection {
        /// The system message that lacks the section.
        id: MessageId,
        /// The heading of the missing section.
        section: &'static str,
    },
}
