//! `session_interactive`: types into a terminal session and reads its output.

mod keys;

use std::sync::Arc;

use crate::prelude::*;
use crate::running::session_start::{DEFAULT_WAIT, MAX_WAIT, interact_with_session};
use crate::running::{Running, shell};

const NAME: &str = "session_interactive";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Running)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionInteractiveParameters {
    /// The session, such as `s1`.
    session_id: String,
    /// Text to type; without `keys`, Enter is pressed after it, and an empty text presses Enter
    /// alone.
    input: Option<String>,
    /// Keys to press after `input`, without a further Enter, such as `["ctrl-c"]` or `["up",
    /// "enter"]`: enter, tab, esc, space, backspace, delete, up, down, left, right, home, end,
    /// page-up, page-down, f1 to f12, ctrl-a to ctrl-z, any single character.
    keys: Option<Vec<String>>,
    /// Seconds to wait for what comes of it; default 10.
    #[schemars(range(min = 0, max = MAX_WAIT))]
    timeout: Option<u64>,
}

/// Defines the tool `session_interactive`, which types into sessions of `running`.
pub(crate) fn define_tool(running: Arc<Running>) -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("session_interactive/prompt"),
        &MANUAL,
        Access::Execute,
        derive_intent,
    )
    .with_function(move |context, parameters| {
        Box::pin(type_into_session(Arc::clone(&running), context, parameters))
    })
}

async fn type_into_session(
    running: Arc<Running>,
    context: &ToolContext,
    SessionInteractiveParameters {
        session_id,
        input,
        keys,
        timeout,
    }: SessionInteractiveParameters,
) -> CallResult {
    let wait = shell::parse_timeout(timeout, DEFAULT_WAIT, 0, MAX_WAIT)?;
    let typed = keys::encode_input(input.as_deref(), keys.as_deref())?;
    let session = running.sessions.find_session(&session_id)?;
    interact_with_session(&running, context, &session, &typed, wait).await
}

fn derive_intent(arguments: &Value) -> Intent {
    Intent::from_parameters(
        arguments,
        |SessionInteractiveParameters { input, keys, .. }| match (input, keys) {
            // Without input the call only reads the output.
            (None, None) => Intent::Nothing,
            (input, keys) => {
                let keys = keys.unwrap_or_default().join(" ");
                Intent::Input(
                    format!("{} {keys}", input.unwrap_or_default())
                        .trim()
                        .to_owned(),
                )
            }
        },
    )
}

#[cfg(test)]
mod tests;
