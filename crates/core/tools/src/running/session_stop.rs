//! `session_stop`: ends a session.

use std::sync::Arc;
use std::time::Duration;

use haft_sandbox::Pause;

use crate::prelude::*;
use crate::running::Running;
use crate::running::session_start::PtyReport;

const NAME: &str = "session_stop";

static MANUAL: Manual = Manual {
    set: Set::Extension,
    ..Manual::of(Group::Running)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionStopParameters {
    /// The session, such as `s1`.
    session_id: String,
}

/// Defines the tool for the sessions of `running`.
pub(crate) fn tool(running: Arc<Running>) -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("session_stop/prompt"),
        &MANUAL,
        Access::Execute,
        |_| Intent::Nothing,
    )
    .runs(move |context, parameters| Box::pin(run(Arc::clone(&running), context, parameters)))
}

async fn run(
    running: Arc<Running>,
    context: &ToolContext,
    SessionStopParameters { session_id }: SessionStopParameters,
) -> CallResult {
    let session = running.sessions.find(&session_id)?;
    session.terminal.stop();
    session.terminal.ended().await;
    let spoken = PtyReport::new(&session, Pause::Ended, Duration::ZERO);
    let envelope = spoken.envelope(context.limits.into());
    running
        .sessions
        .close(&session, &spoken.ending().unwrap_or_default());
    Ok(envelope?.into())
}
