//! `session_interactive`: types into a session and reads what comes of it.

mod keys;

use std::sync::Arc;

use async_trait::async_trait;
use haft_tool::{Access, Intent, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Failure, settle};
use crate::manual::{Group, Manual};
use crate::running::session_start::{DEFAULT_WAIT, MAX_WAIT, speak};
use crate::running::{Running, shell};
use crate::spec_of;

const NAME: &str = "session_interactive";

static MANUAL: Manual = Manual {
    example_of: "Answering a program that waits for a line",
    example: r#"{"session_id": "s1", "input": "check(64)"}"#,
    ..Manual::of(Group::Running)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The session, such as `s1`.
    session_id: String,
    /// The text to type.
    input: Option<String>,
    /// Keys to press after it, such as `ctrl-c` or `up`.
    keys: Option<Vec<String>>,
    /// Seconds to wait for what comes of it; default 10.
    #[schemars(range(min = 0, max = MAX_WAIT))]
    timeout: Option<u64>,
}

/// The tool.
pub(crate) struct SessionInteractive {
    spec: ToolSpec,
    running: Arc<Running>,
}

impl SessionInteractive {
    pub(crate) fn new(running: Arc<Running>) -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("session_interactive/prompt.md")), running }
    }

    async fn run(&self, context: &ToolContext, arguments: Value) -> Result<ToolOutput, Failure> {
        let Parameters { session_id, input, keys, timeout } = parse_arguments(NAME, arguments)?;
        let wait = shell::seconds(timeout, DEFAULT_WAIT, 0, MAX_WAIT)?;
        let typed = keys::typed(input.as_deref(), keys.as_deref())?;
        let session = self.running.sessions.find(&session_id)?;
        speak(&self.running, context, &session, &typed, wait).await
    }
}

#[async_trait]
impl Tool for SessionInteractive {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Execute
    }

    fn intent(&self, arguments: &Value) -> Intent {
        match parse_arguments::<Parameters>(NAME, arguments.clone()) {
            // Only a look at what it shows.
            Ok(Parameters { input: None, keys: None, .. }) | Err(_) => Intent::Nothing,
            Ok(Parameters { input, keys, .. }) => {
                let keys = keys.unwrap_or_default().join(" ");
                Intent::Input(format!("{} {keys}", input.unwrap_or_default()).trim().to_owned())
            }
        }
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        settle(self.run(context, arguments).await)
    }
}

#[cfg(test)]
mod tests;
