//! Why no request could be made.

use haft_types::{MessageId, Role};

use crate::policy::PolicyError;
use crate::reduce::safe_zone::SafeZoneError;

/// Why the system layer or a request could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// A built-in template failed; a bug of haft.
    #[error("section `{section}` of the system layer does not render; this is a bug in haft")]
    Template {
        /// The section's template.
        section: &'static str,
        /// What the template engine says.
        #[source]
        source: minijinja::Error,
    },
    /// There is nothing to answer.
    #[error("the conversation holds no message to answer; send an input first")]
    NoInput,
    /// The request breaks a rule that every request must keep.
    #[error("the request cannot be sent")]
    Integrity(#[from] IntegrityError),
    /// The configuration holds a value no request can be built with.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The configured safe zone does not fit the model.
    #[error("`context.safe_zone` does not fit the model")]
    SafeZone(#[from] SafeZoneError),
    /// The request is larger than the room the model leaves for input.
    #[error(
        "the request needs {tokens} tokens and the model has room for {room}; \
         use a model with a larger window or start a new conversation\n{table}"
    )]
    TooLarge {
        /// What the request needs.
        tokens: u64,
        /// The window without the output reserve.
        room: u64,
        /// Each layer's size, as text.
        table: String,
    },
}

/// A rule the request breaks.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntegrityError {
    /// There is no message at all.
    #[error("the request holds no message")]
    Empty,
    /// The first message is not the system message.
    #[error("message {id} comes first but is a {role} message; the system message must")]
    FirstNotSystem {
        /// The message.
        id: MessageId,
        /// Its role.
        role: Role,
    },
    /// A second system message.
    #[error("message {id} is a second system message; there must be exactly one")]
    SecondSystem {
        /// The message.
        id: MessageId,
    },
    /// The last message leaves the model nothing to answer.
    #[error(
        "message {id} comes last but is a {role} message; a user message or a tool result must"
    )]
    LastNotAnswerable {
        /// The message.
        id: MessageId,
        /// Its role.
        role: Role,
    },
    /// A block is not whole.
    #[error("message {id} calls tools, but call `{call}` is not answered directly after it")]
    BrokenBlock {
        /// The assistant message.
        id: MessageId,
        /// The call without result.
        call: String,
    },
    /// A result does not follow its call.
    #[error(
        "message {id} holds a result of call `{call}`, which no message directly before it made"
    )]
    OrphanResult {
        /// The tool message.
        id: MessageId,
        /// The unknown call.
        call: String,
    },
    /// A part stands in a message of the wrong role.
    #[error("message {id} is a {role} message but holds a tool call or result")]
    MisplacedPart {
        /// The message.
        id: MessageId,
        /// Its role.
        role: Role,
    },
    /// The execute view has not its four messages.
    #[error(
        "the execute view must be four messages of system, dialogue, window and state, not {roles:?}"
    )]
    ViewShape {
        /// The roles there are.
        roles: Vec<Role>,
    },
    /// A section that must be in the system layer is not.
    #[error("system message {id} lacks the section `{section}`")]
    MissingSection {
        /// The system message.
        id: MessageId,
        /// The heading.
        section: &'static str,
    },
}
