//! Requests that `haft proxy` recorded, looked at as haft's own are.

#[cfg(feature = "proxy")]
mod in_build {
    use haft_proxy::RecordedBody;
    use haft_store::LoggedRequest;
    use haft_types::ModelSpec;

    /// The model of a recorded request; `None` for requests of haft itself.
    pub(in super::super) fn spec(encoding: Option<&str>) -> Option<ModelSpec> {
        RecordedBody::read(encoding?).map(|recorded| recorded.spec)
    }

    /// The body of a recorded request, as it was sent.
    pub(in super::super) fn body(logged: &LoggedRequest) -> Option<Vec<u8>> {
        let recorded = RecordedBody::read(logged.encoding.as_deref()?)?;
        Some(
            recorded
                .join(logged.segments.iter().map(|segment| &segment.message))
                .into_bytes(),
        )
    }

    /// The request with messages as people read them.
    pub(in super::super) fn readable(mut logged: LoggedRequest) -> LoggedRequest {
        if spec(logged.encoding.as_deref()).is_some() {
            for segment in &mut logged.segments {
                segment.message = haft_proxy::readable(&segment.message, &segment.owner);
            }
        }
        logged
    }
}

/// Without the proxy its records are what they are: messages of JSON.
#[cfg(not(feature = "proxy"))]
mod in_build {
    use haft_store::LoggedRequest;
    use haft_types::ModelSpec;

    pub(in super::super) fn spec(_: Option<&str>) -> Option<ModelSpec> {
        None
    }

    pub(in super::super) fn body(_: &LoggedRequest) -> Option<Vec<u8>> {
        None
    }

    pub(in super::super) fn readable(logged: LoggedRequest) -> LoggedRequest {
        logged
    }
}

pub(super) use in_build::{body, readable, spec};
