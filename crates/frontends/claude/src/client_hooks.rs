//! Hooks that the client implements: haft calls them with requests on standard output.
//!
//! Invariant: if a hook before a tool call fails or does not answer, the call does not run, unless
//! the client declared otherwise.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use haft_agent::{Callback, HookContext, HookEvent, HookOutcome, parse_hook_output};
use haft_project::hooks::Matcher;
use haft_types::HookPoint;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::claude_messages::claude_mode_name;
use crate::{ClaudeCall, ClaudeError, StreamControl, ToolNaming};

/// The timeout of a hook in seconds, if the client sets none.
const DEFAULT_TIMEOUT_SECONDS: f64 = 60.0;
/// The maximum timeout of a hook, in seconds.
const MAX_TIMEOUT_SECONDS: f64 = 24.0 * 3600.0;

/// A group of hooks that share a matcher, as the client declares it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HookDeclaration {
    #[serde(default)]
    matcher: Option<String>,
    hook_callback_ids: Vec<String>,
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    on_failure: Option<String>,
}

/// Parses the hooks in a client's `initialize` request. Hook points that haft does not have are
/// ignored; an invalid declaration or matcher is an error.
pub fn parse_client_hooks(
    declared: &Value,
    naming: ToolNaming,
    control: &Arc<StreamControl>,
) -> Result<Vec<Arc<dyn Callback>>, ClaudeError> {
    let mut hooks: Vec<Arc<dyn Callback>> = Vec::new();
    for (name, groups) in declared.as_object().into_iter().flatten() {
        let Some(point) = HookPoint::from_name(name) else {
            continue;
        };
        let groups: Vec<HookDeclaration> =
            Deserialize::deserialize(groups).map_err(|error| ClaudeError::Hooks {
                point: name.clone(),
                error,
            })?;
        for HookDeclaration {
            matcher,
            hook_callback_ids,
            timeout,
            on_failure,
        } in groups
        {
            let matcher = Matcher::new(matcher.as_deref().unwrap_or_default())
                .map_err(ClaudeError::Matcher)?;
            let seconds = timeout
                .filter(|seconds| *seconds > 0.0)
                .unwrap_or(DEFAULT_TIMEOUT_SECONDS)
                .min(MAX_TIMEOUT_SECONDS);
            hooks.extend(hook_callback_ids.into_iter().map(|id| {
                Arc::new(ClientHook {
                    id,
                    point,
                    matcher: matcher.clone(),
                    limit: Duration::from_secs_f64(seconds),
                    blocks: blocks_on_failure(point, on_failure.as_deref()),
                    naming,
                    control: Arc::clone(control),
                }) as Arc<dyn Callback>
            }));
        }
    }
    Ok(hooks)
}

/// True if a hook that fails at `point` blocks the call or the prompt. A tool call is blocked
/// unless the client declared otherwise; a prompt is blocked only if the client declared so.
fn blocks_on_failure(point: HookPoint, on_failure: Option<&str>) -> bool {
    match on_failure {
        Some("continue") => false,
        Some(_) => matches!(point, HookPoint::PreToolCall | HookPoint::UserPromptSubmit),
        None => point == HookPoint::PreToolCall,
    }
}

/// A hook that runs in the client, registered for one hook point.
struct ClientHook {
    id: String,
    point: HookPoint,
    matcher: Matcher,
    limit: Duration,
    /// True if a failure of the hook blocks the tool call or the prompt.
    blocks: bool,
    naming: ToolNaming,
    control: Arc<StreamControl>,
}

#[async_trait]
impl Callback for ClientHook {
    fn name(&self) -> &str {
        &self.id
    }

    fn listens_to(&self, point: HookPoint) -> bool {
        point == self.point
    }

    fn wants(&self, event: &HookEvent) -> bool {
        self.matcher.matches(&event.matcher_names())
    }

    async fn call(&self, context: &HookContext<'_>) -> Result<HookOutcome, String> {
        let (input, shown) = self.build_input(context);
        let request = json!({
            "subtype": "hook_callback", "callback_id": self.id, "input": input, "tool_use_id": input["tool_use_id"],
        });
        // Clients close the input before the session ends, but still read the output.
        if self.point == HookPoint::ConversationEnd && self.control.has_input_ended() {
            self.control.notify_client(&request);
            return Ok(HookOutcome::default());
        }
        let answer = tokio::select! {
            answer = self.control.call_client(&request, Some(self.limit)) => answer,
            () = context.cancel.cancelled() => return Ok(HookOutcome::default()),
        };
        let outcome = answer.and_then(|answer| parse_hook_output(self.point, &answer.to_string()));
        match outcome {
            Ok(outcome) => Ok(self.translate_outcome(outcome, context.event, shown.as_ref())),
            Err(why) if self.blocks => Ok(HookOutcome {
                block: Some(format!("it failed: {why}")),
                ..HookOutcome::default()
            }),
            Err(why) => Err(why),
        }
    }
}

impl ClientHook {
    /// Returns the input for the hook and, if the event has a tool call, the call as it appears in
    /// the input, under the names that the client knows.
    fn build_input(&self, context: &HookContext<'_>) -> (Value, Option<ClaudeCall>) {
        let mut input = json!({
            "session_id": context.conversation_id,
            "transcript_path": "",
            "cwd": context.cwd,
            "permission_mode": claude_mode_name(context.mode),
            "hook_event_name": self.point.claude_name(),
        });
        if let (Value::Object(input), Ok(Value::Object(event))) =
            (&mut input, serde_json::to_value(context.event))
        {
            input.extend(event);
        }
        let call = find_called_tool(context.event)
            .map(|(tool, arguments)| self.naming.translate_call(tool, arguments, context.cwd));
        if let Some(call) = &call {
            input["tool_name"] = call.name.as_str().into();
            input["tool_input"] = call.input.clone();
        }
        (input, call)
    }

    /// Translates tool arguments that a hook returned back to the arguments of haft's tool.
    fn translate_outcome(
        &self,
        mut outcome: HookOutcome,
        event: &HookEvent,
        shown: Option<&ClaudeCall>,
    ) -> HookOutcome {
        if let (Some(input), Some(shown), Some((tool, arguments))) =
            (&outcome.input, shown, find_called_tool(event))
        {
            let meant = self
                .naming
                .restore_arguments(tool, arguments, &shown.input, input);
            outcome.input = Some(meant);
        }
        outcome
    }
}

fn find_called_tool(event: &HookEvent) -> Option<(&str, &Value)> {
    match event {
        HookEvent::PreToolCall {
            tool, tool_input, ..
        }
        | HookEvent::PostToolCall {
            tool, tool_input, ..
        } => Some((&tool.name, tool_input)),
        _ => None,
    }
}
