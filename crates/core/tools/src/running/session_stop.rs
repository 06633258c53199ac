//! `session_stop`: ends a terminal session.

use std::sync::Arc;
use std::time::Duration;

use haft_sandbox::WaitEnd;

use crate::prelude::*;
use crate::running::Running;
use crate::running::session_start::PtyReport;

const NAME: &str = "session_stop";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Running)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionStopParameters {
    /// The session, such as `s1`.
    session_id: String,
}

/// Defines the tool `session_stop`, which stops sessions of `running`.
pub(crate) fn define_tool(running: Arc<Running>) -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("session_stop/prompt"),
        &MANUAL,
        Access::Execute,
        |_| Intent::Nothing,
    )
    .with_function(move |context, parameters| {
        Box::pin(stop_session(Arc::clone(&running), context, parameters))
    })
}

async fn stop_session(
    running: Arc<Running>,
    context: &ToolContext,
    SessionStopParameters { session_id }: SessionStopParameters,
) -> CallResult {
    let session = running.sessions.find_session(&session_id)?;
    session.terminal.stop();
    session.terminal.wait_for_end().await;
    let spoken = PtyReport::new(&session, WaitEnd::Ended, Duration::ZERO);
    let envelope = spoken.build_envelope(context.limits.into());
    running
        .sessions
        .close_session(&session, &spoken.describe_ending().unwrap_or_default());
    Ok(envelope?.into())
}
