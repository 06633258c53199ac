//! Treats requests that `haft proxy` recorded like requests that haft sent.

#[cfg(feature = "proxy")]
mod in_build {
    use haft_proxy::RecordedBody;
    use haft_store::LoggedRequest;
    use haft_types::ModelSpec;

    /// Returns the model of a recorded request, or `None` for requests of haft itself.
    pub fn recorded_model(encoding: Option<&str>) -> Option<ModelSpec> {
        RecordedBody::from_encoding(encoding?).map(|recorded| recorded.spec)
    }

    /// Returns the body of a recorded request as it was sent.
    pub(crate) fn recorded_body(logged: &LoggedRequest) -> Option<Vec<u8>> {
        let recorded = RecordedBody::from_encoding(logged.encoding.as_deref()?)?;
        Some(
            recorded
                .join(logged.segments.iter().map(|segment| &segment.message))
                .into_bytes(),
        )
    }

    /// Formats the messages of a recorded request for people.
    pub fn to_readable(mut logged: LoggedRequest) -> LoggedRequest {
        if recorded_model(logged.encoding.as_deref()).is_some() {
            for segment in &mut logged.segments {
                segment.message = haft_proxy::to_readable_message(&segment.message, &segment.owner);
            }
        }
        logged
    }
}

/// Replacements in builds without the proxy feature: recorded requests are not recognized, and
/// their messages stay JSON.
#[cfg(not(feature = "proxy"))]
mod in_build {
    use haft_store::LoggedRequest;
    use haft_types::ModelSpec;

    pub fn recorded_model(_: Option<&str>) -> Option<ModelSpec> {
        None
    }

    pub(crate) fn recorded_body(_: &LoggedRequest) -> Option<Vec<u8>> {
        None
    }

    pub fn to_readable(logged: LoggedRequest) -> LoggedRequest {
        logged
    }
}

pub(crate) use in_build::recorded_body;
pub use in_build::{recorded_model, to_readable};
