//! What the rules of all four services share.

/// Why a request is refused, before it takes the shape of the service's error body.
#[derive(Debug)]
pub(super) struct Problem {
    /// The HTTP status.
    pub(super) status: u16,
    /// The message as the service words it.
    pub(super) message: String,
}
