//! `session_stop`: ends a session.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use haft_sandbox::Pause;
use haft_tool::{Access, Intent, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Failure, settle};
use crate::manual::{Group, Manual};
use crate::running::session_start::Spoken;
use crate::running::{Running, shell};
use crate::spec_of;

const NAME: &str = "session_stop";

static MANUAL: Manual = Manual {
    example_of: "Ending a session that is no longer needed",
    example: r#"{"session_id": "s1"}"#,
    ..Manual::of(Group::Running)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The session, such as `s1`.
    session_id: String,
}

/// The tool.
pub(crate) struct SessionStop {
    spec: ToolSpec,
    running: Arc<Running>,
}

impl SessionStop {
    pub(crate) fn new(running: Arc<Running>) -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("session_stop/prompt.md")), running }
    }

    async fn run(&self, context: &ToolContext, arguments: Value) -> Result<ToolOutput, Failure> {
        let Parameters { session_id } = parse_arguments(NAME, arguments)?;
        let session = self.running.sessions.find(&session_id)?;
        session.terminal.stop();
        session.terminal.ended().await;
        let spoken = Spoken::new(&session, Pause::Ended, Duration::ZERO);
        let envelope = spoken.envelope(shell::limits(context));
        self.running.sessions.close(&session, &spoken.ending().unwrap_or_default());
        Ok(envelope?.into())
    }
}

#[async_trait]
impl Tool for SessionStop {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Execute
    }

    fn intent(&self, _: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        settle(self.run(context, arguments).await)
    }
}
