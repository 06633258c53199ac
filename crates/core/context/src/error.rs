//! Why no request could be made.

use crate::build::integrity::IntegrityError;
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
